// RemoteModules, a model server and a parameter server, with their real gRPC services.

#include "worker/torch/remote_module/remote_module.h"

#include <grpcpp/grpcpp.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/module_server.grpc.pb.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_client.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/connection/module/module_link.h"
#include "worker/job_flags.h"
#include "worker/torch/models/models.h"
#include "worker/torch/remote_module/serve_module.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Options = torch::optim::SGDOptions;

// ---- Modules ----

// The output of x is w · w · x for each element, so that the gradient of w tells which w it was
// computed on.
struct Squares : torch::nn::Module {
  explicit Squares(float first) { w = register_parameter("w", torch::full({2}, first)); }
  torch::Tensor forward(const torch::Tensor& x) { return w * w * x; }
  torch::Tensor w;
};

struct FirstHalf : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear->forward(x)); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 4));
};

struct SecondHalf : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 2));
};

ModuleMaker MakeSquares(float first) {
  return [first] { return Served(std::make_shared<Squares>(first)); };
}

// The same module for every trainer: its parameters are those of `seed`.
template <typename Net>
ModuleMaker MakeSeeded(uint64_t seed) {
  return [seed] {
    torch::manual_seed(seed);
    return Served(std::make_shared<Net>());
  };
}

// ---- A job with a model server ----

class ModuleWorld {
 public:
  ModuleWorld(const ShardOptions& options, const ModuleMaker& make, double learning_rate = 1,
              uint32_t max_trainers = 64)
      : world_(options), directory_(PrivateDirectory::Create().value()) {
    ServeModuleOptions serve;
    serve.address = "unix:" + directory_->path() + "/module.sock";
    serve.max_trainers = max_trainers;
    host_ = StartModuleHost(world_.JobOf("model-server", absl::Seconds(1)), make,
                            Options(learning_rate), serve);
  }

  Job Trainer(const std::string& name) const {
    JobFlags flags;
    flags.server = host_->address().ToString();
    flags.name = name;
    return Job::Start(flags).value();
  }

  absl::StatusOr<std::unique_ptr<ModuleSession>> Enter(const std::string& name,
                                                       const std::string& token = "") const {
    ModuleLinkOptions options;
    options.address = host_->address().ToString();
    options.token = token;
    options.trainer = name;
    return EnterModule(options);
  }

  // The job's parameters.
  Values Parameters() { return ValuesOf(world_.shard().store().stripe().latest()->values.span()); }

  JobWorld& job() { return world_; }
  ModuleHost& host() { return *host_; }
  void StopHost() { host_ = nullptr; }

 private:
  JobWorld world_;
  const std::unique_ptr<PrivateDirectory> directory_;
  std::unique_ptr<ModuleHost> host_;
};

absl::Status ErrorFrom(const std::function<void()>& body) {
  try {
    body();
  } catch (const RemoteError& error) {
    return error.status();
  }
  return absl::OkStatus();
}

Values Numbers(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().contiguous().flatten();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

class RemoteModuleTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

// ---- What comes out ----

TEST_F(RemoteModuleTest, ComputesTheOutputAndTakesAStepWithTheGradient) {
  ModuleWorld world(Sync(1), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor output = model.forward(torch::tensor({1.f, 2.f}));
  EXPECT_THAT(Numbers(output), ElementsAre(9, 18));
  output.sum().backward();
  EXPECT_EQ(model.step().step, Step(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(3 - 6, 3 - 12));  // w − 2 · w · x
  EXPECT_THAT(Numbers(model.forward(torch::tensor({1.f, 2.f}))), ElementsAre(9, 162));
}

constexpr int kSteps = 10;
constexpr int kTrainers = 3;

torch::Tensor InputsOf(uint32_t index, int step) {
  return torch::full({2, 3}, 0.1f * static_cast<float>(index + 1)) + 0.01f * step;
}

// What kTrainers workers end with that compute themselves.
Values TrainThemselves() {
  ShardOptions options = Sync(kTrainers);
  options.consistency.order = ReductionOrder::kRank;
  JobWorld world(options);
  std::vector<std::shared_ptr<FirstHalf>> models;
  std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
  for (int i = 0; i < kTrainers; ++i) {
    torch::manual_seed(5);
    models.push_back(std::make_shared<FirstHalf>());
    optimizers.push_back(std::make_unique<RemoteOptimizer>(world.JobOf(std::string(1, 'a' + i)),
                                                           *models[i], Options(0.1)));
  }
  InParallel(kTrainers, [&](int i) {
    for (int step = 0; step < kSteps; ++step) {
      optimizers[i]->zero_grad();
      models[i]->forward(InputsOf(optimizers[i]->index(), step)).square().sum().backward();
      optimizers[i]->step();
    }
  });
  return ValuesOf(world.shard().store().stripe().latest()->values.span());
}

TEST_F(RemoteModuleTest, TrainersEndWithTheBitsOfWorkersThatComputeThemselves) {
  ShardOptions options = Sync(kTrainers);
  options.consistency.order = ReductionOrder::kRank;
  ModuleWorld world(options, MakeSeeded<FirstHalf>(5), 0.1);
  std::vector<Job> jobs;
  std::vector<std::unique_ptr<RemoteModule>> models;
  for (int i = 0; i < kTrainers; ++i) jobs.push_back(world.Trainer(std::string(1, 'a' + i)));
  for (int i = 0; i < kTrainers; ++i) {
    models.push_back(std::make_unique<RemoteModule>(jobs[i]));
  }
  InParallel(kTrainers, [&](int i) {
    for (int step = 0; step < kSteps; ++step) {
      models[i]->forward(InputsOf(models[i]->index(), step)).square().sum().backward();
      EXPECT_EQ(models[i]->step().step, Step(step + 1));
    }
  });
  EXPECT_EQ(world.Parameters(), TrainThemselves());
}

TEST_F(RemoteModuleTest, AModelOnTwoServersEndsWithTheBitsOfTheWhole) {
  constexpr double kRate = 0.125;  // a power of two, with which a step rounds once
  ModuleWorld first(Sync(1), MakeSeeded<FirstHalf>(1), kRate);
  ModuleWorld second(Sync(1), MakeSeeded<SecondHalf>(2), kRate);
  const Job job = first.Trainer("a");
  RemoteModule front(job);
  RemoteModule back(job, second.host().address().ToString());
  torch::manual_seed(1);
  FirstHalf whole_front;
  torch::manual_seed(2);
  SecondHalf whole_back;
  std::vector<torch::Tensor> parameters = whole_front.parameters();
  for (const torch::Tensor& parameter : whole_back.parameters()) parameters.push_back(parameter);
  torch::optim::SGD alone(parameters, Options(kRate));
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor x = InputsOf(0, step);
    back.forward(front.forward(x)).square().sum().backward();
    const std::vector<RoundReport> reports = StepAll({&front, &back}, 2, 0.5f);
    EXPECT_EQ(reports[0].step, Step(step + 1));
    EXPECT_EQ(reports[1].step, Step(step + 1));
    alone.zero_grad();
    whole_back.forward(whole_front.forward(x)).square().sum().backward();
    alone.step();
  }
  const auto flat = [](const torch::nn::Module& module) {
    Values numbers;
    for (const torch::Tensor& parameter : module.parameters()) {
      for (const float x : Numbers(parameter)) numbers.push_back(x);
    }
    return numbers;
  };
  EXPECT_EQ(first.Parameters(), flat(whole_front));
  EXPECT_EQ(second.Parameters(), flat(whole_back));
}

TEST_F(RemoteModuleTest, AnotherTrainersStepDoesNotChangeAnIterationThatHasBegun) {
  ModuleWorld world(Async(1), MakeSquares(3));
  const Job job_a = world.Trainer("a");
  const Job job_b = world.Trainer("b");
  RemoteModule a(job_a);
  RemoteModule b(job_b);
  const torch::Tensor begun = a.forward(torch::tensor({1.f, 1.f}));
  b.forward(torch::tensor({1.f, 0.f})).sum().backward();
  EXPECT_EQ(b.step().staleness, 0u);
  EXPECT_THAT(world.Parameters(), ElementsAre(3 - 6, 3));
  EXPECT_THAT(Numbers(a.forward(torch::tensor({1.f, 1.f}))), ElementsAre(9, 9));
  begun.sum().backward();
  EXPECT_EQ(a.step().staleness, 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3 - 6, 3 - 6));  // the gradient is that of w = 3
}

TEST_F(RemoteModuleTest, SeveralBackwardsAddUp) {
  ModuleWorld world(Sync(1), MakeSquares(1));
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor one = model.forward(torch::tensor({1.f, 0.f}));
  const torch::Tensor two = model.forward(torch::tensor({0.f, 2.f}));
  two.sum().backward();
  one.sum().backward();
  model.step();
  EXPECT_THAT(world.Parameters(), ElementsAre(1 - 2, 1 - 4));
}

TEST_F(RemoteModuleTest, GivesTheGradientsOfThoseInputsThatRequireThem) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    return ServedModule{module, [module](const std::vector<torch::Tensor>& inputs) {
                          return module->w * inputs[0] * inputs[1] + inputs[2];
                        }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor x = torch::tensor({3.f, 4.f}).set_requires_grad(true);
  const torch::Tensor y = torch::tensor({5.f, 6.f});
  const torch::Tensor z = torch::tensor({7.f, 8.f}).set_requires_grad(true);
  const torch::Tensor output = model.forward({x, y, z});
  EXPECT_THAT(Numbers(output), ElementsAre(37, 56));
  output.sum().backward();
  EXPECT_THAT(Numbers(x.grad()), ElementsAre(10, 12));
  EXPECT_FALSE(y.grad().defined());
  EXPECT_THAT(Numbers(z.grad()), ElementsAre(1, 1));
}

TEST_F(RemoteModuleTest, ZeroGradDropsTheGradient) {
  ModuleWorld world(Sync(1), MakeSquares(1));
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  model.forward(torch::tensor({1.f, 1.f})).sum().backward();
  model.zero_grad();
  model.forward(torch::tensor({1.f, 0.f})).sum().backward();
  model.step();
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, 1));
}

TEST_F(RemoteModuleTest, BringsTheGradientOfItsOwnBackwards) {
  ModuleWorld world(Async(1), MakeSquares(3));
  const Job job_a = world.Trainer("a");
  const Job job_b = world.Trainer("b");
  RemoteModule a(job_a);
  RemoteModule b(job_b);
  a.forward(torch::tensor({1.f, 2.f})).sum().backward();
  b.forward(torch::tensor({5.f, 5.f})).sum().backward();
  EXPECT_THAT(Numbers(a.gradients().at("w")), ElementsAre(6, 12));
  EXPECT_THAT(Numbers(a.gradients({"w"}).at("w")), ElementsAre(6, 12));
  EXPECT_THAT(ErrorFrom([&] { a.gradients({"v"}); }),
              IsError(Reason::kBadArgument, HasSubstr("trains no parameter \"v\"")));
  a.step();
  EXPECT_THAT(Numbers(a.gradients().at("w")), ElementsAre(0, 0));
}

TEST_F(RemoteModuleTest, CallsTheMethodsThatTheServerOffersAndNoOthers) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    ServedModule served = Served(module);
    served.methods["both"] = [module](const std::vector<torch::Tensor>& x) {
      return std::vector<torch::Tensor>{x[0] * module->w, torch::tensor(module->is_training())};
    };
    return served;
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  model.eval();
  const std::vector<torch::Tensor> returned = model.call("both", {torch::tensor({1.f, 5.f})});
  ASSERT_EQ(returned.size(), 2u);
  EXPECT_THAT(Numbers(returned[0]), ElementsAre(2, 10));
  EXPECT_FALSE(returned[0].requires_grad());
  EXPECT_FALSE(returned[1].item<bool>());
  EXPECT_THAT(ErrorFrom([&] { model.call("parameters"); }),
              IsError(Reason::kBadArgument, HasSubstr("offers no method \"parameters\"")));
}

TEST_F(RemoteModuleTest, TheModuleIsInTheTrainersMode) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    return ServedModule{module, [module](const std::vector<torch::Tensor>&) {
                          return torch::full({}, module->is_training() ? 1.f : 0.f);
                        }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model.forward(torch::zeros(1)).item<float>(), 1);
  model.eval();
  EXPECT_EQ(model.forward(torch::zeros(1)).item<float>(), 0);
}

TEST_F(RemoteModuleTest, AMethodThatChangesTheModeChangesItForItselfAlone) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    ServedModule served = Served(module);
    served.methods["evaluate"] = [module](const std::vector<torch::Tensor>& x) {
      const bool trained = module->is_training();
      module->eval();
      TORCH_CHECK(x.empty(), "it breaks");
      return std::vector<torch::Tensor>{torch::tensor(trained)};
    };
    return served;
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  EXPECT_TRUE(model.call("evaluate")[0].item<bool>());
  EXPECT_TRUE(model.call("evaluate")[0].item<bool>());
  EXPECT_THAT(ErrorFrom([&] { model.call("evaluate", {torch::zeros(1)}); }),
              IsError(Reason::kBadArgument, HasSubstr("it breaks")));
  EXPECT_TRUE(model.call("evaluate")[0].item<bool>());
}

// Two parameters of 36 MiB.
struct Large : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x * (a[0] + b[0]); }
  torch::Tensor a = register_parameter("a", torch::zeros(9 << 20));
  torch::Tensor b = register_parameter("b", torch::zeros(9 << 20));
};

TEST_F(RemoteModuleTest, GradientsThatFillMoreThanAMessageComeInParts) {
  ModuleWorld world(Sync(1), [] { return Served(std::make_shared<Large>()); });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  EXPECT_THAT(ErrorFrom([&] { model.gradients(); }),
              IsError(Reason::kBadArgument, HasSubstr("name fewer parameters")));
  EXPECT_THAT(ErrorFrom([&] {
                model.gradients({"a", "a"});
              }),
              IsError(Reason::kBadArgument, HasSubstr("name each parameter once")));
  EXPECT_EQ(model.gradients({"b"}).at("b").numel(), 9 << 20);
}

TEST_F(RemoteModuleTest, EveryElementTypeArrivesAsItIs) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    return ServedModule{module, [](const std::vector<torch::Tensor>& inputs) { return inputs[0]; }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16,
                          torch::kInt64, torch::kInt32, torch::kUInt8, torch::kBool}) {
    const torch::Tensor sent = torch::tensor({{0, 1, 1}, {1, 0, 1}}).to(type).t();
    const torch::Tensor received = model.forward(sent);
    EXPECT_EQ(received.scalar_type(), type);
    EXPECT_TRUE(received.equal(sent));
  }
  EXPECT_EQ(model.forward(torch::zeros({0, 3})).sizes(), torch::IntArrayRef({0, 3}));
}

TEST_F(RemoteModuleTest, AfterTheEndItComputesOnTheFinalParameters) {
  ModuleWorld world(Async(1), MakeSquares(3));
  const Job job_a = world.Trainer("a");
  const Job job_b = world.Trainer("b");
  RemoteModule a(job_a);
  {
    RemoteModule b(job_b);
    b.forward(torch::tensor({1.f, 0.f})).sum().backward();
    b.step();
    b.leave();
  }
  a.await_end_of_training();
  const torch::NoGradGuard no_grad;
  EXPECT_THAT(Numbers(a.forward(torch::tensor({1.f, 1.f}))), ElementsAre(9, 9));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, 3));
}

// ---- Trainers that come and go ----

TEST_F(RemoteModuleTest, NobodyWaitsForATrainerThatHasLeft) {
  ModuleWorld world(Sync(2), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule a(job);
  const auto b = world.Enter("b").value();
  a.forward(torch::tensor({1.f, 0.f})).sum().backward();
  EXPECT_THAT(b->Leave(false), IsOk());
  EXPECT_EQ(a.step().step, Step(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(3 - 6, 3));
}

TEST_F(RemoteModuleTest, ATrainerThatWasKilledIsWaitedForAndMayComeAgain) {
  ModuleWorld world(Sync(2), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule a(job);
  world.Enter("b").value() = nullptr;  // without Leave
  const Job again = world.Trainer("b");
  RemoteModule b(again);
  EXPECT_EQ(b.index(), 1u);
  a.forward(torch::tensor({1.f, 0.f})).sum().backward();
  b.forward(torch::tensor({3.f, 0.f})).sum().backward();
  InParallel(2, [&](int i) { EXPECT_EQ((i == 0 ? a : b).step().step, Step(1)); });
  EXPECT_THAT(world.Parameters(), ElementsAre(3 - (6 + 18) / 2, 3));
}

TEST_F(RemoteModuleTest, ATrainerReplacesTheOneOfTheSameName) {
  ModuleWorld world(Sync(1), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule former(job);
  RemoteModule later(job);
  EXPECT_THAT(ErrorFrom([&] { former.forward(torch::zeros(2)); }),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
  later.forward(torch::tensor({1.f, 0.f})).sum().backward();
  EXPECT_EQ(later.step().step, Step(1));
}

TEST_F(RemoteModuleTest, ATrainerThatComesAgainHasThePlaceOfTheFormerOne) {
  ModuleWorld world(Sync(2), MakeSquares(3));
  const Job job = world.Trainer("b");
  const auto a = world.Enter("a").value();
  {
    RemoteModule b(job);
    EXPECT_EQ(b.index(), 1u);
    EXPECT_EQ(b.workers(), 2u);
  }
  RemoteModule again(job);
  EXPECT_EQ(again.index(), 1u);
  EXPECT_EQ(again.pushes_before(), 0u);
}

TEST_F(RemoteModuleTest, TheHostEndsWhenAllTrainersHaveComeAndLeft) {
  ModuleWorld world(Sync(2), MakeSquares(3));
  for (const std::string name : {"a", "b"}) {
    EXPECT_THAT(world.Enter(name).value()->Leave(false), IsOk());
  }
  world.host().AwaitEnd();
}

TEST_F(RemoteModuleTest, TheHostGivesUpTrainersThatWereGoneForTooLong) {
  ModuleWorld world(Sync(1), MakeSquares(3));  // for the second that its job has patience
  world.Enter("a").value() = nullptr;
  world.host().AwaitEnd();
}

TEST_F(RemoteModuleTest, AModelServerHasNoMoreTrainersThanItMay) {
  ModuleWorld world(Sync(1), MakeSquares(3), 1, /*max_trainers=*/1);
  const auto a = world.Enter("a").value();
  EXPECT_THAT(world.Enter("b"), IsError(Reason::kTooManyWorkers, HasSubstr("has 1 trainers")));
}

TEST_F(RemoteModuleTest, SaysThatTheModelServerIsGone) {
  ModuleWorld world(Sync(1), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  world.StopHost();
  EXPECT_THAT(ErrorFrom([&] { model.forward(torch::zeros(2)); }),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
  EXPECT_THAT(ErrorFrom([&] { model.step(); }),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
}

TEST_F(RemoteModuleTest, SaysThatTheParameterServerIsGone) {
  ModuleWorld world(Sync(1), MakeSquares(3));
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  world.job().StopServer();
  model.forward(torch::tensor({1.f, 2.f})).sum().backward();
  EXPECT_THAT(ErrorFrom([&] { model.step(); }),
              HasCode(absl::StatusCode::kUnavailable, testing::_));
}

// ---- Misuse ----

// Each of these leaves the trainer able to go on.
class MisuseTest : public RemoteModuleTest {
 protected:
  MisuseTest() : world_(Sync(1), MakeSquares(3)), job_(world_.Trainer("a")), model_(job_) {}
  ~MisuseTest() override {
    model_.zero_grad();
    model_.forward(torch::tensor({1.f, 2.f})).sum().backward();
    EXPECT_EQ(model_.step().step, Step(1));
    EXPECT_THAT(world_.Parameters(), ElementsAre(3 - 6, 3 - 12));
  }

  ModuleWorld world_;
  const Job job_;
  RemoteModule model_;
};

TEST_F(MisuseTest, AnInputThatDoesNotFitTheModuleIsRefused) {
  EXPECT_THAT(ErrorFrom([this] { model_.forward(torch::zeros({7})); }),
              IsError(Reason::kBadArgument, HasSubstr("size of tensor a (2)")));
}

TEST_F(MisuseTest, TwoInputsForAModuleOfOneAreRefused) {
  EXPECT_THAT(ErrorFrom([this] {
                model_.forward({torch::zeros(2), torch::zeros(2)});
              }),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("takes 1 input, found 2")));
}

TEST_F(MisuseTest, NoInputIsRefused) {
  EXPECT_THAT(ErrorFrom([this] { model_.forward(std::vector<torch::Tensor>()); }),
              IsError(Reason::kBadArgument, HasSubstr("has 0 inputs")));
}

TEST_F(MisuseTest, ASecondBackwardIsRefused) {
  const torch::Tensor output = model_.forward(torch::ones(2).set_requires_grad(true));
  output.sum().backward({}, /*retain_graph=*/true);
  EXPECT_THAT(ErrorFrom([&] { output.sum().backward(); }),
              IsError(Reason::kBadArgument, HasSubstr("each has one backward")));
}

TEST_F(MisuseTest, ABackwardAfterZeroGradIsRefused) {
  const torch::Tensor output = model_.forward(torch::ones(2));
  model_.zero_grad();
  EXPECT_THAT(ErrorFrom([&] { output.sum().backward(); }),
              IsError(Reason::kBadArgument, HasSubstr("before step() and zero_grad()")));
}

TEST_F(MisuseTest, GradientsOfSecondOrderAreRefused) {
  const torch::Tensor x = torch::ones(2).set_requires_grad(true);
  const torch::Tensor output = model_.forward(x).sum();
  EXPECT_THROW(torch::autograd::grad({output}, {x}, {}, true, /*create_graph=*/true),
               std::logic_error);
}

TEST_F(MisuseTest, TooManyOutputsWithoutBackwardAreRefused) {
  std::vector<torch::Tensor> outputs;
  for (size_t i = 0; i < ModuleSession::kMaxKept; ++i) {
    outputs.push_back(model_.forward(torch::ones(2)));
  }
  EXPECT_THAT(ErrorFrom([&] { model_.forward(torch::ones(2)); }),
              IsError(Reason::kBadArgument, HasSubstr("64 outputs without backward")));
  const torch::NoGradGuard no_grad;
  EXPECT_THAT(Numbers(model_.forward(torch::ones(2))), ElementsAre(9, 9));
}

TEST_F(MisuseTest, TensorsThatCannotBeSentAreRefused) {
  EXPECT_THROW(model_.forward(torch::zeros(2, torch::kComplexFloat)), std::invalid_argument);
  EXPECT_THROW(model_.forward(torch::zeros({2, 2}).to_sparse()), std::invalid_argument);
  EXPECT_THROW(model_.forward(torch::Tensor()), std::invalid_argument);
}

TEST_F(MisuseTest, TensorsThatFillMoreThanAMessageAreRefused) {
  EXPECT_THAT(ErrorFrom([this] { model_.forward(torch::zeros({(16 << 20) + 1})); }),
              IsError(Reason::kBadArgument, HasSubstr("use smaller batches")));
}

TEST_F(MisuseTest, AGradientThatIsNotFiniteIsRefusedByTheParameterServer) {
  const torch::Tensor output = model_.forward(torch::ones(2));
  (output.sum() * std::numeric_limits<float>::infinity()).backward();
  EXPECT_THAT(ErrorFrom([this] { model_.step(); }), IsError(Reason::kNotFinite, testing::_));
}

// A module whose backward fails if the gradient is above 1.
ModuleMaker MakeFragile() {
  return [] {
    auto module = std::make_shared<Squares>(3);
    return ServedModule{module, [module](const std::vector<torch::Tensor>& inputs) {
                          torch::Tensor output = module->forward(inputs[0]);
                          output.register_hook([](const torch::Tensor& gradient) {
                            TORCH_CHECK(gradient.max().item<float>() <= 1, "it breaks");
                          });
                          return output;
                        }};
  };
}

TEST_F(RemoteModuleTest, NothingIsPushedAfterABackwardThatFailed) {
  ModuleWorld world(Sync(1), MakeFragile());
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  model.forward(torch::tensor({1.f, 0.f})).sum().backward();
  (model.forward(torch::tensor({1.f, 0.f})) * 2).sum().backward();  // nobody waits for its answer
  EXPECT_THAT(ErrorFrom([&] { model.step(); }),
              IsError(Reason::kBadArgument, HasSubstr("it breaks")));
  EXPECT_THAT(world.Parameters(), ElementsAre(3, 3));
  model.forward(torch::tensor({1.f, 0.f})).sum().backward();
  EXPECT_EQ(model.step().step, Step(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(3 - 6, 3));
}

TEST_F(RemoteModuleTest, AnOutputWithoutGradientsHasNoGradientFunction) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    return ServedModule{module, [module](const std::vector<torch::Tensor>& inputs) {
                          return module->forward(inputs[0]).argmax();
                        }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor output = model.forward(torch::tensor({1.f, 2.f}));
  EXPECT_EQ(output.item<int64_t>(), 1);
  EXPECT_FALSE(output.requires_grad());
}

TEST_F(RemoteModuleTest, AModuleMayChangeItsInputInPlace) {
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(2);
    return ServedModule{module, [module](const std::vector<torch::Tensor>& inputs) {
                          return module->forward(inputs[0].relu_());
                        }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor x = torch::tensor({-1.f, 5.f}).set_requires_grad(true);
  model.forward(x).sum().backward();
  EXPECT_THAT(Numbers(x.grad()), ElementsAre(0, 4));
}

TEST_F(RemoteModuleTest, OutputsAndGradientsOfManyMegabytesArrive) {
  constexpr int64_t kElements = 4 << 20;
  ModuleWorld world(Sync(1), [] {
    auto module = std::make_shared<Squares>(1);
    return ServedModule{module, [module](const std::vector<torch::Tensor>& inputs) {
                          return inputs[0] * module->w[0];
                        }};
  });
  const Job job = world.Trainer("a");
  RemoteModule model(job);
  const torch::Tensor x = torch::ones(kElements).set_requires_grad(true);
  const torch::Tensor output = model.forward(x);
  EXPECT_EQ(output.numel(), kElements);
  output.sum().backward();
  EXPECT_EQ(x.grad().sum().item<double>(), kElements);
}

// ---- Below the interface ----

using Stream = grpc::ClientReaderWriter<v1::ModuleRequest, v1::ModuleReply>;

class ModuleServerTest : public RemoteModuleTest {
 protected:
  ModuleServerTest()
      : world_(Sync(1), MakeSquares(3)),
        stub_(v1::ModuleServer::NewStub(grpc::CreateChannel(world_.host().address().ToString(),
                                                            grpc::InsecureChannelCredentials()))) {}

  // Sends the requests and returns the status of the call.
  grpc::Status Send(const std::vector<v1::ModuleRequest>& requests) {
    grpc::ClientContext context;
    const std::unique_ptr<Stream> stream = stub_->Train(&context);
    for (const v1::ModuleRequest& request : requests) stream->Write(request);
    stream->WritesDone();
    replies_.clear();
    v1::ModuleReply reply;
    while (stream->Read(&reply)) replies_.push_back(reply);
    return stream->Finish();
  }

  static v1::ModuleRequest Entering(const std::string& name) {
    v1::ModuleRequest request;
    request.mutable_enter()->set_trainer(name);
    return request;
  }

  // What a forward of one tensor is answered with.
  std::string RefusalOf(const v1::ModuleTensor& tensor) {
    v1::ModuleRequest request;
    *request.mutable_forward()->add_inputs() = tensor;
    EXPECT_TRUE(Send({Entering("a"), request}).ok());
    return replies_.back().failure().reason() + ": " + replies_.back().failure().message();
  }

  ModuleWorld world_;
  const std::unique_ptr<v1::ModuleServer::Stub> stub_;
  std::vector<v1::ModuleReply> replies_;
};

TEST_F(ModuleServerTest, TheFirstRequestEnters) {
  v1::ModuleRequest step;
  step.mutable_step()->set_samples(1);
  const grpc::Status status = Send({step});
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("is not `enter`"));
  EXPECT_THAT(replies_, IsEmpty());
}

TEST_F(ModuleServerTest, OnlyTheFirstRequestEnters) {
  EXPECT_EQ(Send({Entering("a"), Entering("b")}).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Send({Entering("a"), v1::ModuleRequest()}).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(ModuleServerTest, ATrainerHasAName) {
  EXPECT_EQ(Send({Entering("")}).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Send({Entering(std::string(129, 'x'))}).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Send({Entering(std::string("a\0b", 3))}).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_TRUE(Send({Entering(std::string(128, 'x'))}).ok());
}

TEST_F(ModuleServerTest, ATensorThatLiesAboutItsSizeIsRefused) {
  v1::ModuleTensor tensor;
  tensor.set_type(v1::ELEMENT_FLOAT32);
  tensor.add_shape(2);
  tensor.set_data(std::string(4, '\0'));
  EXPECT_THAT(RefusalOf(tensor),
              HasSubstr("BAD_ARGUMENT: a tensor of shape (2) and elements of 4"));
  tensor.set_shape(0, -1);
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("shape (-1)"));
  tensor.set_shape(0, int64_t{1} << 62);
  tensor.add_shape(8);  // the product overflows to 0
  tensor.clear_data();
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("as many as its shape says"));
  tensor.set_shape(1, 0);  // empty, with strides that no memory has
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("as many as its shape says"));
}

TEST_F(ModuleServerTest, ATensorOfAnUnknownTypeOrOfManyDimensionsIsRefused) {
  v1::ModuleTensor tensor;
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("element type is 0"));
  tensor.set_type(v1::ELEMENT_BOOL);
  for (int i = 0; i < 17; ++i) tensor.add_shape(1);
  tensor.set_data("x");
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("17 dimensions"));
}

TEST_F(ModuleServerTest, ABoolIsZeroOrOne) {
  v1::ModuleTensor tensor;
  tensor.set_type(v1::ELEMENT_BOOL);
  tensor.add_shape(2);
  tensor.set_data(std::string("\1\2"));
  EXPECT_THAT(RefusalOf(tensor), HasSubstr("a byte above 1"));
}

TEST_F(ModuleServerTest, NothingIsPushedAfterABackwardWhoseGradientLiesAboutItsSize) {
  v1::ModuleTensor input;
  input.set_type(v1::ELEMENT_FLOAT32);
  input.add_shape(2);
  input.set_data(std::string(8, '\0'));
  std::vector<v1::ModuleRequest> requests(5);
  requests[0] = Entering("a");
  requests[1].mutable_forward()->set_keep(true);
  *requests[1].mutable_forward()->add_inputs() = input;
  *requests[2].mutable_backward()->mutable_gradient() = input;
  requests[2].mutable_backward()->mutable_gradient()->mutable_data()->resize(4);
  requests[3].mutable_step()->set_samples(1);
  requests[4].mutable_step()->set_samples(1);
  EXPECT_TRUE(Send(requests).ok());
  EXPECT_THAT(replies_.at(3).failure().message(), HasSubstr("has 4 bytes"));
  EXPECT_EQ(replies_.at(4).stepped().step(), 1u);
}

TEST_F(ModuleServerTest, AStepOfNoSamplesIsRefused) {
  v1::ModuleRequest step;
  step.mutable_step()->set_samples(0);
  EXPECT_TRUE(Send({Entering("a"), step}).ok());
  EXPECT_EQ(replies_.back().failure().code(), grpc::INVALID_ARGUMENT);
}

TEST_F(ModuleServerTest, AMethodGetsSoundTensorsAndNotTooMany) {
  v1::ModuleRequest request;
  request.mutable_call()->set_method("method");
  v1::ModuleTensor* const tensor = request.mutable_call()->mutable_arguments()->add_tensors();
  EXPECT_TRUE(Send({Entering("a"), request}).ok());
  EXPECT_THAT(replies_.back().failure().message(), HasSubstr("element type is 0"));
  tensor->set_type(v1::ELEMENT_BOOL);
  tensor->add_shape(0);
  const v1::ModuleTensor empty = *tensor;
  for (int i = 0; i < 4096; ++i)
    *request.mutable_call()->mutable_arguments()->add_tensors() = empty;
  EXPECT_TRUE(Send({Entering("a"), request}).ok());
  EXPECT_THAT(replies_.back().failure().message(), HasSubstr("4097 tensors"));
  request.mutable_call()->mutable_arguments()->mutable_tensors()->RemoveLast();
  EXPECT_TRUE(Send({Entering("a"), request}).ok());
  EXPECT_THAT(replies_.back().failure().message(), HasSubstr("offers no method"));
}

TEST_F(ModuleServerTest, AMessageLargerThanTheLimitEndsTheCall) {
  v1::ModuleRequest request;
  request.mutable_forward()->add_inputs()->set_data(std::string((64 << 20) + (1 << 17), 'x'));
  EXPECT_EQ(Send({Entering("a"), request}).error_code(), grpc::RESOURCE_EXHAUSTED);
}

TEST_F(ModuleServerTest, ACompressedMessageIsRefused) {
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const std::unique_ptr<Stream> stream = stub_->Train(&context);
  stream->Write(Entering(std::string(100, 'x')));
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNIMPLEMENTED);
}

}  // namespace
}  // namespace sluice
