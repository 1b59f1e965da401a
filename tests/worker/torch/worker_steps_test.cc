// Workers that step themselves, each with an optimizer of the program's, against a server with its
// real gRPC service.

#include <torch/script.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "worker/torch/model_archive.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// ---- Optimizers that the server lacks ----

struct LionOptions : torch::optim::OptimizerCloneableOptions<LionOptions> {
  explicit LionOptions(double rate = 1e-2) : lr_(rate) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(double, weight_decay) = 0.1;

 public:
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, weight_decay);
  }
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(weight_decay);
  }
  double get_lr() const override { return lr(); }
  void set_lr(const double rate) override { lr(rate); }
};

struct LionParamState : torch::optim::OptimizerCloneableParamState<LionParamState> {
  TORCH_ARG(torch::Tensor, exp_avg);

 public:
  void serialize(torch::serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, exp_avg);
  }
  void serialize(torch::serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(exp_avg);
  }
};

// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2. It does not say
// how it is saved.
class MuteLion : public torch::optim::Optimizer {
 public:
  explicit MuteLion(std::vector<torch::optim::OptimizerParamGroup> groups, LionOptions defaults)
      : Optimizer(std::move(groups), std::make_unique<LionOptions>(defaults)) {}

  torch::Tensor step(LossClosure /*closure*/) override {
    const torch::NoGradGuard no_grad;
    for (torch::optim::OptimizerParamGroup& group : param_groups_) {
      const auto& options = static_cast<const LionOptions&>(group.options());
      for (torch::Tensor& parameter : group.params()) {
        auto& state = state_[c10::guts::to_string(parameter.unsafeGetTensorImpl())];
        if (state == nullptr) {
          auto first = std::make_unique<LionParamState>();
          first->exp_avg(torch::zeros_like(parameter));
          state = std::move(first);
        }
        torch::Tensor& mean = static_cast<LionParamState&>(*state).exp_avg();
        parameter.mul_(1 - options.lr() * options.weight_decay());
        parameter.sub_((mean * 0.9 + parameter.grad() * 0.1).sign(), options.lr());
        mean.mul_(0.99).add_(parameter.grad(), 0.01);
      }
    }
    return {};
  }
};

class Lion : public MuteLion {
 public:
  using MuteLion::MuteLion;

  void save(torch::serialize::OutputArchive& archive) const override {
    torch::optim::serialize<LionParamState, LionOptions>(archive, *this);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::optim::serialize<LionParamState, LionOptions>(archive, *this);
  }
};

using Groups = std::vector<torch::optim::OptimizerParamGroup>;
using Made = std::unique_ptr<torch::optim::Optimizer>;

// The weights, and the biases with a rate of their own.
template <typename Kind, typename Options>
Made MakeOf(const torch::nn::Module& model, double rate) {
  std::vector<torch::Tensor> weights, biases;
  for (const torch::Tensor& parameter : model.parameters()) {
    (parameter.dim() > 1 ? weights : biases).push_back(parameter);
  }
  auto own = std::make_unique<Options>(Options(rate / 2));
  return std::make_unique<Kind>(
      Groups{Groups::value_type(weights), Groups::value_type(biases, std::move(own))},
      Options(rate));
}

Made MakeMuteLion(const torch::nn::Module& model) {
  return MakeOf<MuteLion, LionOptions>(model, 0.01);
}
Made MakeLion(const torch::nn::Module& model) { return MakeOf<Lion, LionOptions>(model, 0.01); }
Made MakeAdam(const torch::nn::Module& model) {
  return MakeOf<torch::optim::Adam, torch::optim::AdamOptions>(model, 0.01);
}
Made MakeAdagrad(const torch::nn::Module& model) {
  return MakeOf<torch::optim::Adagrad, torch::optim::AdagradOptions>(model, 0.05);
}

// ---- Training ----

torch::nn::Sequential Model(uint64_t seed = 1) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8),
                               torch::nn::Tanh(), torch::nn::Linear(8, 2));
}

// Of a batch that depends on the two numbers only.
torch::Tensor LossOf(torch::nn::Sequential& model, int step, int worker) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(1000 * step + worker);
  const torch::Tensor inputs = torch::randn({5, 6}, generator).to(model->parameters()[0].dtype());
  const torch::Tensor targets = inputs.slice(1, 0, 2) * 2 - 1;
  return (model->forward(inputs) - targets).square().mean();
}

// One process that takes the batches of all workers.
torch::nn::Sequential Alone(
    const std::function<Made(const torch::nn::Module&)>& make, int workers, int steps,
    const std::function<void(const std::vector<torch::Tensor>&)>& change = nullptr,
    torch::Dtype type = torch::kFloat32) {
  torch::nn::Sequential model = Model();
  model->to(type);
  const Made optimizer = make(*model);
  torch::optim::StepLR scheduler(*optimizer, 50, 0.5);
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    for (int worker = 0; worker < workers; ++worker) {
      (LossOf(model, step, worker) / workers).backward();
    }
    if (change != nullptr) change(model->parameters());
    optimizer->step();
    scheduler.step();
  }
  return model;
}

double Difference(const torch::nn::Sequential& a, const torch::nn::Sequential& b) {
  double most = 0;
  const std::vector<torch::Tensor> others = b->parameters();
  for (size_t i = 0; i < others.size(); ++i) {
    const torch::Tensor difference = (a->parameters()[i] - others[i]).abs().max();
    most = std::max(most, (difference / others[i].abs().max()).item<double>());
  }
  return most;
}

// A worker with a model and an optimizer of its own.
struct Trainee {
  Trainee(const Job& job, const std::function<Made(const torch::nn::Module&)>& make,
          uint64_t seed = 1, Overlap overlap = Overlap::kOff)
      : model(Model(seed)), own(make(*model)), optimizer(job, *model, *own, overlap) {}

  void Train(int first, int last, int worker) {
    for (int step = first; step < last; ++step) {
      optimizer.zero_grad();
      LossOf(model, step, worker).backward();
      optimizer.step();
      scheduler.step();
    }
  }

  torch::nn::Sequential model;
  Made own;
  RemoteOptimizer optimizer;
  torch::optim::StepLR scheduler{optimizer, 50, 0.5};
};

// Runs each on a thread of its own, and rethrows what they throw.
void Together(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::future<void>> running;
  for (const auto& body : bodies) running.push_back(std::async(std::launch::async, body));
  for (std::future<void>& future : running) future.get();
}

absl::Status ErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const RemoteError& error) {
    return error.status();
  }
  return absl::OkStatus();
}

template <typename Exception>
std::string Thrown(const std::function<void()>& body) {
  try {
    body();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

class WorkerStepsTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

// The mean of two numbers is exact but for one rounding, as in one process.
TEST_F(WorkerStepsTest, TwoWorkersHaveTheBitsOfOneProcessWithAnyOptimizerAndASchedule) {
  for (const auto& make : {MakeLion, MakeAdagrad, MakeAdam}) {
    for (const Overlap overlap : {Overlap::kOff, Overlap::kBackward}) {
      JobWorld world(Sync(2));
      Trainee a(world.JobOf("a"), make, 1, overlap);
      Trainee b(world.JobOf("b"), make, 2, overlap);
      Together({[&a] { a.Train(0, 200, 0); }, [&b] { b.Train(0, 200, 1); }});
      EXPECT_EQ(Difference(a.model, Alone(make, 2, 200)), 0);
      EXPECT_EQ(Difference(b.model, a.model), 0);
      EXPECT_GT(Difference(a.model, Model()), 0.1);
    }
  }
}

TEST_F(WorkerStepsTest, WhatTheLoopDoesToTheMeanCounts) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), MakeLion), b(world.JobOf("b"), MakeLion);
  const auto train = [](Trainee& trainee, int worker) {
    for (int step = 0; step < 60; ++step) {
      trainee.optimizer.zero_grad();
      LossOf(trainee.model, step, worker).backward();
      if (step % 3 == 0) {
        trainee.optimizer.clip_grad_norm(0.25);
      } else {
        trainee.optimizer.reduce(5, 1.0F);
        if (step % 3 == 1) trainee.optimizer.clip_grad_norm(0.25);
        if (step % 3 == 2) torch::nn::utils::clip_grad_norm_(trainee.model->parameters(), 0.25);
      }
      trainee.optimizer.step_async().wait();
      trainee.scheduler.step();
    }
  };
  Together({[&] { train(a, 0); }, [&] { train(b, 1); }});
  const auto clip = [](const std::vector<torch::Tensor>& parameters) {
    torch::nn::utils::clip_grad_norm_(parameters, 0.25);
  };
  EXPECT_EQ(Difference(a.model, Alone(MakeLion, 2, 60, clip)), 0);
  EXPECT_EQ(Difference(b.model, a.model), 0);
}

TEST_F(WorkerStepsTest, AModelOfFloat64StepsInThat) {
  JobWorld world(Sync(1));
  torch::nn::Sequential model = Model();
  model->to(torch::kFloat64);
  const Made own = MakeAdam(*model);
  RemoteOptimizer optimizer(world.JobOf("a"), *model, *own);
  torch::optim::StepLR scheduler(optimizer, 50, 0.5);
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    LossOf(model, step, 0).backward();
    optimizer.step();
    scheduler.step();
  }
  EXPECT_EQ(model->parameters()[0].scalar_type(), torch::kFloat64);
  EXPECT_LT(Difference(model, Alone(MakeAdam, 1, 60, nullptr, torch::kFloat64)), 1e-6);
}

// ---- Coming and going ----

// One of two leaves after 10 steps. Another comes when the first has made 12 alone.
TEST_F(WorkerStepsTest, OneThatComesLateHasTheModelAndTheStateOfAnother) {
  for (const auto& make : {MakeLion, MakeAdagrad, MakeAdam}) {
    JobWorld world(Sync(2));
    Trainee a(world.JobOf("a"), make);
    auto b = std::make_unique<Trainee>(world.JobOf("b"), make);
    Together({[&a] { a.Train(0, 10, 0); }, [&b] { b->Train(0, 10, 1); }});
    b = nullptr;
    a.Train(10, 12, 0);
    std::unique_ptr<Trainee> late;
    Together({[&] {
                late = std::make_unique<Trainee>(world.JobOf("late"), make, 7);
                const auto first = static_cast<int>(late->optimizer.first_step());
                for (int step = 0; step < first; ++step) late->scheduler.step();
                late->Train(first, 70, 1);
                EXPECT_EQ(first, 12);
              },
              [&] {
                while (world.shard().Describe().workers < 2) std::this_thread::yield();
                a.Train(12, 70, 0);
              }});
    EXPECT_EQ(Difference(late->model, a.model), 0);
    EXPECT_EQ(late->own->param_groups()[0].options().get_lr(),
              a.own->param_groups()[0].options().get_lr());
  }
}

TEST(ModelArchiveTest, HasNoCodeThatTheReaderWouldRun) {
  torch::serialize::OutputArchive own;
  own.write("parameter_0", torch::ones({3}), /*is_buffer=*/true);
  torch::serialize::OutputArchive inner(own.compilation_unit());
  inner.write("step", torch::IValue(int64_t{3}));
  own.write("optimizer", inner);
  std::ostringstream bytes;
  own.save_to(bytes);
  EXPECT_THAT(CheckHasNoCode(bytes.str()), IsOk());

  torch::jit::Module module("module");
  module.define("def forward(self, x):\n  return x\n");
  std::ostringstream with_code;
  module.save(with_code);
  EXPECT_EQ(CheckHasNoCode(with_code.str()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckHasNoCode("no archive").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WorkerStepsTest, AStateThatIsNotSavedIsNotLeftOut) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), MakeMuteLion);
  a.Train(0, 3, 0);
  std::string refusal;
  Together({[&] {
              refusal = Thrown<RemoteError>(
                  [&] { const Trainee late(world.JobOf("late"), MakeMuteLion); });
              world.EndLeases();  // nobody waits for it any more
            },
            [&] {
              while (world.shard().Describe().workers < 2) std::this_thread::yield();
              a.Train(3, 4, 0);
            }});
  EXPECT_THAT(refusal, HasSubstr("save() of the optimizer writes nothing"));
}

TEST_F(WorkerStepsTest, AwaitsTheEndWithItsOwnModel) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), MakeAdam);
  a.Train(0, 5, 0);
  a.optimizer.await_end_of_training();
  EXPECT_EQ(Difference(a.model, Alone(MakeAdam, 1, 5)), 0);
  EXPECT_EQ(a.model->parameters()[0].grad().abs().sum().item<float>(), 0);
  a.optimizer.report({{"test accuracy", 0.9}});
  EXPECT_EQ(world.shard().results().at("test accuracy"), 0.9);
}

// ---- Refusals ----

TEST_F(WorkerStepsTest, RefusesOptimizersAndModesThatCannotWork) {
  torch::nn::Sequential model = Model();
  JobWorld asynchronous(Async(1));
  const Made own = MakeLion(*model);
  EXPECT_THAT(ErrorOf([&] { RemoteOptimizer(asynchronous.JobOf("a"), *model, *own); }),
              IsError(Reason::kBadOptimizer, HasSubstr("mode async lets them miss some")));
  JobWorld world(Sync(1));
  torch::optim::LBFGS again(model->parameters());
  EXPECT_THAT(
      Thrown<std::invalid_argument>([&] { RemoteOptimizer(world.JobOf("a"), *model, again); }),
      HasSubstr("LBFGS computes the gradient several times in a step"));
  torch::optim::Adam some({model->parameters()[0]});
  EXPECT_THAT(
      Thrown<std::invalid_argument>([&] { RemoteOptimizer(world.JobOf("a"), *model, some); }),
      HasSubstr("\"0.bias\" is in no parameter group"));
  torch::optim::Adam others(Model()->parameters());
  EXPECT_THAT(
      Thrown<std::invalid_argument>([&] { RemoteOptimizer(world.JobOf("a"), *model, others); }),
      HasSubstr("none of the model's parameters"));
  EXPECT_EQ(world.shard().layout(), nullptr);
  RemoteOptimizer served(world.JobOf("a"), *model, torch::optim::SGDOptions(0.1));
  EXPECT_THAT(Thrown<std::logic_error>([&] { served.reduce(); }), HasSubstr("the server steps"));
}

TEST_F(WorkerStepsTest, AStepThatIsDueIsTakenOnceAndNotForgotten) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), MakeAdam);
  LossOf(a.model, 0, 0).backward();
  a.optimizer.reduce(5);
  EXPECT_THAT(
      ErrorOf([&] { a.optimizer.zero_grad(); }),
      HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("call step() after reduce()")));
  EXPECT_THAT(
      ErrorOf([&] { a.optimizer.await_end_of_training(); }),
      HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("call step() after reduce()")));
  EXPECT_THAT(Thrown<std::invalid_argument>([&] { a.optimizer.step(5); }),
              HasSubstr("give them to reduce()"));
  EXPECT_EQ(a.optimizer.reduce().step, Step(1));
  EXPECT_EQ(a.optimizer.step().step, Step(1));
  EXPECT_EQ(Difference(a.model, Alone(MakeAdam, 1, 1)), 0);
  EXPECT_THAT(ErrorOf([&] { a.optimizer.clip_grad_norm(0); }),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("the clip norm is 0")));
  a.own->add_param_group(
      Groups::value_type(std::vector<torch::Tensor>{torch::zeros({2}, torch::requires_grad())}));
  EXPECT_THAT(Thrown<std::invalid_argument>([&] { a.optimizer.step(); }),
              HasSubstr("the optimizer's parameters"));
}

class Breaks : public torch::optim::SGD {
 public:
  using SGD::SGD;
  torch::Tensor step(LossClosure /*closure*/) override {
    const torch::NoGradGuard no_grad;
    param_groups_[0].params()[0].add_(1);
    throw std::runtime_error("no memory");
  }
};

Made MakeBreaks(const torch::nn::Module& model) {
  return MakeOf<Breaks, torch::optim::SGDOptions>(model, 0.1);
}

TEST_F(WorkerStepsTest, AStepThatBreaksOffEndsTheTraining) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), MakeBreaks);
  LossOf(a.model, 0, 0).backward();
  EXPECT_EQ(Thrown<std::runtime_error>([&] { a.optimizer.step(); }), "no memory");
  const torch::Tensor before = a.model->parameters()[0].clone();
  const std::vector<std::function<void()>> calls = {
      [&] { a.optimizer.step(); }, [&] { a.optimizer.zero_grad(); }, [&] { a.optimizer.reduce(); }};
  for (const auto& call : calls) {
    EXPECT_THAT(ErrorOf(call),
                HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("has broken off")));
  }
  EXPECT_TRUE(before.equal(a.model->parameters()[0]));
}

}  // namespace
}  // namespace sluice
