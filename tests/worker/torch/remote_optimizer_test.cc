// RemoteOptimizers against a server with its real gRPC service.

#include "worker/torch/remote_optimizer.h"

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/data/load_dataset.h"
#include "worker/data/sampler.h"
#include "worker/job_flags.h"
#include "worker/torch/models/models.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

using Options = torch::optim::SGDOptions;

// ---- Models ----

// A vector "w" of weights, and, if asked for, a vector "f" that is frozen or a buffer.
class Weights : public torch::nn::Module {
 public:
  explicit Weights(const Values& w, const Values& frozen = {}, const Values& buffer = {})
      : w_(register_parameter("w", torch::tensor(w))) {
    if (!frozen.empty()) f_ = register_parameter("f", torch::tensor(frozen), false);
    if (!buffer.empty()) f_ = register_buffer("f", torch::tensor(buffer));
  }

  Values w() const { return Elements(w_); }
  Values f() const { return Elements(f_); }

  // The loss w · gradient.
  void Backward(const Values& gradient) const { (w_ * torch::tensor(gradient)).sum().backward(); }

 private:
  static Values Elements(const torch::Tensor& tensor) {
    return Values(tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel());
  }

  torch::Tensor w_;
  torch::Tensor f_;
};

// A worker that trains weights with learning rate 1: a step subtracts the mean gradient.
class Trainee {
 public:
  Trainee(const Job& job, const Values& w, const Values& frozen = {})
      : weights_(w, frozen), optimizer_(job, weights_, Options(1)) {}

  RoundReport Step(const Values& gradient) {
    optimizer_.zero_grad();
    weights_.Backward(gradient);
    return optimizer_.step();
  }

  Values w() const { return weights_.w(); }
  Values f() const { return weights_.f(); }
  RemoteOptimizer& optimizer() { return optimizer_; }

 private:
  Weights weights_;
  RemoteOptimizer optimizer_;
};

std::shared_ptr<Classifier> SeededModel(const std::string& name, uint64_t seed) {
  torch::manual_seed(seed);
  return MakeModel(name);
}

// All parameters, one after the other.
torch::Tensor Flat(const torch::nn::Module& model) {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& parameter : model.parameters()) {
    parts.push_back(parameter.detach().flatten());
  }
  return torch::cat(parts).clone();
}

// ---- Data ----

const Dataset& FashionMnist() {
  static const Dataset* const data = new Dataset(LoadDataset({}, DatasetSplit::kTest).value());
  return *data;
}

struct TorchBatch {
  torch::Tensor images;
  torch::Tensor labels;
};

TorchBatch BatchOf(const Dataset& data, const std::vector<int64_t>& rows) {
  const auto pixels = const_cast<uint8_t*>(data.images.data());
  const auto labels = const_cast<uint8_t*>(data.labels.data());
  const torch::Tensor index = torch::tensor(rows, torch::kInt64);
  const torch::Tensor images =
      torch::from_blob(pixels, {data.size(), 1, data.form.rows, data.form.columns}, torch::kUInt8);
  const torch::Tensor targets = torch::from_blob(labels, {data.size()}, torch::kUInt8);
  return {images.index_select(0, index).to(torch::kFloat32).div(255).sub(0.286).div(0.353),
          targets.index_select(0, index).to(torch::kInt64)};
}

Sampler SamplerFor(int batch_size, int index, int workers) {
  SamplerOptions options;
  options.dataset_size = FashionMnist().size();
  options.batch_size = batch_size;
  options.worker_index = index;
  options.workers = workers;
  options.seed = 1;
  return Sampler(options);
}

void Backward(Classifier& model, const TorchBatch& batch) {
  torch::nn::functional::cross_entropy(model.forward(batch.images), batch.labels).backward();
}

// ---- Threads ----

// Runs each on a thread of its own, and rethrows what they throw.
void InParallel(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::future<void>> running;
  for (const auto& body : bodies) running.push_back(std::async(std::launch::async, body));
  for (std::future<void>& future : running) future.get();
}

// What `body` threw.
absl::Status ErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.what(), error.status().message());
    return error.status();
  }
  return absl::OkStatus();
}

class RemoteOptimizerTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

// ---- Training ----

constexpr int kWorkers = 3;
constexpr int kBatch = 8;
// After more, a rounding may turn a ReLU or choose another pixel of a pool, which no bound
// forgives: with the kernels of OpenBLAS for AVX-512 that happens in step 30, and 1e-7 becomes
// 1e-4.
constexpr int kSteps = 20;

Options MomentumAndDecay() { return Options(0.05).momentum(0.9).weight_decay(5e-4); }

// `kSteps` steps of one process on batches of kWorkers · kBatch.
torch::Tensor TrainAlone(uint64_t seed) {
  const auto model = SeededModel("lenet", seed);
  torch::optim::SGD optimizer(model->parameters(), MomentumAndDecay());
  Sampler sampler = SamplerFor(kWorkers * kBatch, 0, 1);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    Backward(*model, BatchOf(FashionMnist(), sampler.Batch(0, step)));
    optimizer.step();
  }
  return Flat(*model);
}

// The same by kWorkers workers. The first one's seed decides; the others' parameters are replaced.
std::vector<torch::Tensor> TrainTogether(uint64_t seed) {
  // By rank, since rounding depends on the order of a sum, and a rounded bit may turn a ReLU.
  ShardOptions options = Sync(kWorkers);
  options.consistency.order = ReductionOrder::kRank;
  JobWorld world(options);
  std::vector<std::shared_ptr<Classifier>> models;
  std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
  std::vector<std::function<void()>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    models.push_back(SeededModel("lenet", seed + i));
    optimizers.push_back(std::make_unique<RemoteOptimizer>(
        world.JobOf("worker" + std::to_string(i)), *models.back(), MomentumAndDecay()));
    workers.push_back([&model = *models.back(), &optimizer = *optimizers.back()] {
      Sampler sampler = SamplerFor(kBatch, optimizer.index(), optimizer.workers());
      for (int step = 0; step < kSteps; ++step) {
        optimizer.zero_grad();
        Backward(model, BatchOf(FashionMnist(), sampler.Batch(0, step)));
        EXPECT_EQ(optimizer.step(kBatch).step, Step(step + 1));
      }
    });
  }
  InParallel(workers);
  std::vector<torch::Tensor> parameters;
  for (const auto& model : models) parameters.push_back(Flat(*model));
  return parameters;
}

TEST_F(RemoteOptimizerTest, ThreeSyncWorkersEndWhereOneProcessWithTheTripleBatchEnds) {
  const torch::Tensor alone = TrainAlone(1);
  const std::vector<torch::Tensor> together = TrainTogether(1);
  const torch::Tensor difference = together[0] - alone;
  const double relative = (difference.norm() / alone.norm()).item<double>();
  const double largest = (difference.abs().max() / alone.abs().max()).item<double>();
  RecordProperty("relative_difference", std::to_string(relative * 1e6) + "e-6");
  RecordProperty("largest_difference", std::to_string(largest * 1e6) + "e-6");
  EXPECT_LE(relative, 1e-5);
  EXPECT_LE(largest, 1e-5);
  EXPECT_TRUE(together[1].equal(together[0]));
  EXPECT_TRUE(together[2].equal(together[0]));
  // It has gone somewhere: the parameters are not those it began with.
  EXPECT_GE(((alone - Flat(*SeededModel("lenet", 1))).norm() / alone.norm()).item<double>(), 0.1);
}

TEST_F(RemoteOptimizerTest, AStepSubtractsTheMeanGradientOfTheWorkers) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8, 8});
  Trainee b(world.JobOf("b"), {8, 8});
  InParallel({[&a] {
                EXPECT_EQ(a.Step({1, 2}).step, Step(1));
              },
              [&b] {
                EXPECT_EQ(b.Step({3, 6}).step, Step(1));
              }});
  EXPECT_THAT(a.w(), ElementsAre(6, 4));
  EXPECT_THAT(b.w(), ElementsAre(6, 4));
}

TEST_F(RemoteOptimizerTest, ShowsTheLossOfABatchToWhoeverInspectsTheServer) {
  JobWorld world(Sync(1));
  Weights weights({1});
  RemoteOptimizer optimizer(world.JobOf("a"), weights, Options(1));
  weights.Backward({1});
  optimizer.step(32, 0.75f);
  EXPECT_EQ(world.RecordOf("a").loss, 0.75f);
}

// ---- Optimizers ----

using Groups = std::vector<torch::optim::OptimizerParamGroup>;

// No weight decay for biases, as is usual, and a smaller learning rate for them.
Groups WeightsAndBiases(const torch::nn::Module& model) {
  std::vector<torch::Tensor> weights, biases;
  for (const torch::Tensor& parameter : model.parameters()) {
    (parameter.dim() > 1 ? weights : biases).push_back(parameter);
  }
  auto own = std::make_unique<torch::optim::AdamOptions>(5e-4);
  return {Groups::value_type(weights), Groups::value_type(biases, std::move(own))};
}

torch::optim::AdamOptions AdamWithDecay() {
  return torch::optim::AdamOptions(1e-3).weight_decay(0.1);
}

// `kSteps` steps of the model on batches of kBatch.
template <typename Optimizer>
void Train(Classifier& model, Optimizer& optimizer) {
  Sampler sampler = SamplerFor(kBatch, 0, 1);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    Backward(model, BatchOf(FashionMnist(), sampler.Batch(0, step)));
    optimizer.step();
  }
}

TEST_F(RemoteOptimizerTest, AdamWithGroupsEndsWhereTorchsAdamEnds) {
  JobWorld world(Sync(1));
  const auto served = SeededModel("lenet", 1);
  RemoteOptimizer remote(world.JobOf("a"), *served, WeightsAndBiases(*served), AdamWithDecay());
  Train(*served, remote);
  const auto alone = SeededModel("lenet", 1);
  torch::optim::Adam local(WeightsAndBiases(*alone), AdamWithDecay());
  Train(*alone, local);
  const auto largest = [](const torch::Tensor& t) { return t.abs().max().item<double>(); };
  const double difference = largest(Flat(*served) - Flat(*alone)) / largest(Flat(*alone));
  RecordProperty("largest_difference", std::to_string(difference * 1e6) + "e-6");
  EXPECT_LE(difference, 1e-5);
  EXPECT_GE(largest(Flat(*alone) - Flat(*SeededModel("lenet", 1))) / largest(Flat(*alone)), 0.05);
}

TEST_F(RemoteOptimizerTest, ASchedulerOfTorchHoldsAsItDoesInOneProcess) {
  JobWorld world(Sync(1));
  const auto train = [](Classifier& model, auto& optimizer) {
    torch::optim::StepLR scheduler(optimizer, 2, 0.5);
    Sampler sampler = SamplerFor(kBatch, 0, 1);
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      Backward(model, BatchOf(FashionMnist(), sampler.Batch(0, step)));
      optimizer.step();
      scheduler.step();
    }
    return optimizer.param_groups()[1].options().get_lr();
  };
  const auto served = SeededModel("lenet", 1);
  RemoteOptimizer remote(world.JobOf("a"), *served, WeightsAndBiases(*served), AdamWithDecay());
  const double rate = train(*served, remote);
  const auto alone = SeededModel("lenet", 1);
  torch::optim::Adam local(WeightsAndBiases(*alone), AdamWithDecay());
  EXPECT_EQ(rate, train(*alone, local));
  EXPECT_LT(rate, 5e-4);
  const auto largest = [](const torch::Tensor& t) { return t.abs().max().item<double>(); };
  EXPECT_LE(largest(Flat(*served) - Flat(*alone)) / largest(Flat(*alone)), 1e-5);
}

TEST_F(RemoteOptimizerTest, RefusesOptionsWhoseSlotsTheServerHasNotKept) {
  JobWorld world(Sync(1));
  Weights weights({8});
  RemoteOptimizer optimizer(world.JobOf("a"), weights, Options(1));
  static_cast<Options&>(optimizer.param_groups()[0].options()).momentum(0.9);
  weights.Backward({1});
  EXPECT_THAT(ErrorOf([&] { optimizer.step(); }),
              IsError(Reason::kBadOptimizer, HasSubstr("now need momentum_buffer")));
  static_cast<Options&>(optimizer.param_groups()[0].options()).momentum(0);
  optimizer.step();
  EXPECT_THAT(weights.w(), ElementsAre(7));
}

TEST_F(RemoteOptimizerTest, TakesEveryOptimizerOfTorchAndLamb) {
  const auto first_step = [](const OptimizerConfig& config) {
    JobWorld world(Sync(1));
    Weights weights({8});
    RemoteOptimizer optimizer(world.JobOf("a"), weights, config);
    weights.Backward({3});
    optimizer.step();
    return weights.w()[0];
  };
  // The first step of all that divide by the gradient's size is the learning rate, or, of RMSprop,
  // ten times that; LAMB's is relative to the weight.
  EXPECT_FLOAT_EQ(first_step({AdamOptions()}), 8 - 1e-3);
  EXPECT_FLOAT_EQ(first_step({AdamWOptions()}), 8 - 8 * 1e-5 - 1e-3);
  EXPECT_FLOAT_EQ(first_step({AdagradOptions()}), 8 - 1e-2);
  EXPECT_FLOAT_EQ(first_step({RmsPropOptions()}), 8 - 1e-1);
  EXPECT_FLOAT_EQ(first_step({LambOptions()}), 8 - 8 * 1e-3);
}

TEST_F(RemoteOptimizerTest, TakesTheOptionsOfEachByThemselves) {
  JobWorld world(Sync(1));
  Weights weights({8});
  RemoteOptimizer optimizer(world.JobOf("a"), weights, LambOptions());
  EXPECT_TRUE(std::holds_alternative<LambOptions>(world.shard().Describe().optimizer->options));
  EXPECT_THAT(ErrorOf([&world] {
                Weights other({8});
                RemoteOptimizer(world.JobOf("b"), other, torch::optim::AdagradOptions());
              }),
              IsError(Reason::kOptimizerMismatch, HasSubstr("is adagrad, the job's is lamb")));
}

TEST_F(RemoteOptimizerTest, RefusesGroupsOfAnotherKindAndNamesThatTheModelLacks) {
  JobWorld world(Sync(1));
  Weights weights({8});
  const auto join = [&](const OptimizerConfig& config) {
    RemoteOptimizer(world.JobOf("a"), weights, config);
  };
  EXPECT_THAT(ErrorOf([&] {
                join({SgdOptions(), {{{"w"}, AdamOptions()}}});
              }),
              IsError(Reason::kBadOptimizer, HasSubstr("is of adam, expected sgd")));
  EXPECT_THAT(ErrorOf([&] {
                join({SgdOptions(), {{{"v"}, SgdOptions()}}});
              }),
              IsError(Reason::kBadOptimizer, HasSubstr("\"v\", which is not in the model")));
  EXPECT_EQ(world.shard().layout(), nullptr);
}

// ---- Statistics ----

torch::Tensor MeanOf(const std::vector<torch::Tensor>& tensors) {
  return torch::stack(tensors).to(torch::kFloat64).mean(0);
}

// The "mlp" by hand, with BatchNorm in evaluation mode on these statistics.
torch::Tensor MlpOutput(const Classifier& mlp, const torch::Tensor& images,
                        const torch::Tensor& mean, const torch::Tensor& variance) {
  const auto p = [parameters = mlp.named_parameters()](const std::string& name) {
    return parameters[name].detach().to(torch::kFloat64);
  };
  const torch::Tensor hidden =
      images.flatten(1).to(torch::kFloat64).matmul(p("hidden.weight").t()) + p("hidden.bias");
  const torch::Tensor normal =
      (hidden - mean) / (variance + 1e-5).sqrt() * p("norm.weight") + p("norm.bias");
  return normal.relu().matmul(p("output.weight").t()) + p("output.bias");
}

TEST_F(RemoteOptimizerTest, MakesStatisticsTheMeanOfTheWorkersAndEvaluatesWithThem) {
  JobWorld world(Sync(kWorkers));
  std::vector<std::shared_ptr<Classifier>> models;
  std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
  std::vector<std::function<void()>> steps;
  std::vector<torch::Tensor> means, variances;
  for (int i = 0; i < kWorkers; ++i) {
    models.push_back(SeededModel("mlp", 1));
    optimizers.push_back(std::make_unique<RemoteOptimizer>(
        world.JobOf("worker" + std::to_string(i)), *models[i], Options(0.1)));
    Backward(*models[i], BatchOf(FashionMnist(), SamplerFor(32, i, kWorkers).Batch(0, 0)));
    means.push_back(models[i]->named_buffers()["norm.running_mean"].clone());
    variances.push_back(models[i]->named_buffers()["norm.running_var"].clone());
    steps.push_back([&optimizer = *optimizers[i]] { optimizer.step(32); });
  }
  InParallel(steps);
  ASSERT_FALSE(means[0].allclose(means[1]));

  const torch::Tensor mean = MeanOf(means);
  const torch::Tensor variance = MeanOf(variances);
  const TorchBatch test = BatchOf(FashionMnist(), {0, 1, 2, 3});
  for (const auto& model : models) {
    const auto buffers = model->named_buffers();
    EXPECT_TRUE(buffers["norm.running_mean"].to(torch::kFloat64).allclose(mean, 1e-6, 1e-7));
    EXPECT_TRUE(buffers["norm.running_var"].to(torch::kFloat64).allclose(variance, 1e-6, 1e-7));
    EXPECT_EQ(buffers["norm.num_batches_tracked"].item<int64_t>(), 1);
    model->eval();
    const torch::Tensor output = model->forward(test.images).to(torch::kFloat64);
    EXPECT_TRUE(output.allclose(MlpOutput(*model, test.images, mean, variance), 1e-4, 1e-5));
  }
}

// Each worker's batches are of equal rows, so their averages are known. All workers pull, then each
// pushes in turn: the averages are those of a process that has seen all batches one after the
// other.
void TrainOnStaleNorms(const std::vector<const Job*>& jobs, Overlap overlap) {
  class Normed : public torch::nn::Module {
   public:
    Normed() : norm(register_module("norm", torch::nn::BatchNorm1d(1))) {}
    torch::nn::BatchNorm1d norm;
  };
  std::vector<std::unique_ptr<Normed>> models;
  std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
  for (const Job* const job : jobs) {
    models.push_back(std::make_unique<Normed>());
    optimizers.push_back(std::make_unique<RemoteOptimizer>(*job, *models.back(), Options(0.1),
                                                           absl::nullopt, overlap));
  }
  double mean = 0;
  double variance = 1;
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < models.size(); ++i) {
      const float value = static_cast<float>(5 * round + 3 * i);
      optimizers[i]->zero_grad();
      models[i]->norm->forward(torch::full({8, 1}, value)).sum().backward();
      optimizers[i]->step();
      mean = 0.9 * mean + 0.1 * value;
      variance *= 0.9;
      EXPECT_NEAR(models[i]->norm->running_mean.item<double>(), mean, 1e-3);
      EXPECT_NEAR(models[i]->norm->running_var.item<double>(), variance, 1e-3);
    }
  }
}

TEST_F(RemoteOptimizerTest, StaleAveragesFollowTheBatchesOfAllWorkers) {
  for (const Overlap overlap : {Overlap::kOff, Overlap::kBackward}) {
    JobWorld world(Async(1));
    std::vector<const Job*> jobs;
    for (int i = 0; i < 6; ++i) jobs.push_back(&world.JobOf("worker" + std::to_string(i)));
    TrainOnStaleNorms(jobs, overlap);
  }
}

// The server would take the two for one worker that joins again.
TEST_F(RemoteOptimizerTest, ASecondOneOfAJobIsRefusedUntilTheFirstHasLeft) {
  JobWorld world(Sync(1));
  const Job& job = world.JobOf("a");
  Trainee first(job, {8});
  const auto refusal = [&]() -> std::string {
    try {
      const Trainee second(job, {8});
    } catch (const RemoteError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(), HasSubstr("give the second model a name"));
  first.Step({1});
  EXPECT_THAT(first.w(), ElementsAre(7));
  first.optimizer().leave();
  EXPECT_THAT(refusal(), Not(HasSubstr("give the second model a name")));
}

TEST_F(RemoteOptimizerTest, AFrozenParameterHasTheBitsOfTheFirstWorker) {
  JobWorld world(Sync(kWorkers));
  const Values frozen = {0.1f, 1.4f, -1e-20f, 3e30f};
  std::vector<std::unique_ptr<Trainee>> trainees;
  std::vector<std::function<void()>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    trainees.push_back(
        std::make_unique<Trainee>(world.JobOf("worker" + std::to_string(i)), Values{1}, frozen));
    workers.push_back([&trainee = *trainees[i]] {
      for (int step = 0; step < 10; ++step) trainee.Step({1});
    });
  }
  InParallel(workers);
  EXPECT_THAT(trainees[0]->w(), ElementsAre(1 - 10));
  EXPECT_EQ(trainees[0]->f(), frozen);
}

// ---- Refusals ----

TEST_F(RemoteOptimizerTest, RefusesAnotherModelAndNamesTheFirstParameterThatDiffers) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), {1, 2});
  EXPECT_THAT(ErrorOf([&world] {
                Trainee(world.JobOf("b"), {1, 2, 3});
              }),
              IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("\"w\" [3] float32"),
                                                     HasSubstr("the job's is \"w\" [2] float32"))));
  EXPECT_THAT(ErrorOf([&world] {
                Trainee(world.JobOf("c"), {1, 2}, {3});
              }),
              IsError(Reason::kLayoutMismatch, HasSubstr("one too many is \"f\" [1]")));
  // The worker of the right model goes on, alone.
  EXPECT_EQ(a.Step({1, 1}).step, Step(1));
  EXPECT_EQ(world.shard().Describe().workers, 1u);
}

TEST_F(RemoteOptimizerTest, RefusesOtherOptionsOfTheOptimizer) {
  JobWorld world(Sync(1));
  Weights weights({1, 2});
  RemoteOptimizer first(world.JobOf("a"), weights, Options(0.1).momentum(0.9));
  Weights others({3, 4});
  EXPECT_THAT(
      ErrorOf([&] { RemoteOptimizer(world.JobOf("b"), others, Options(0.1).momentum(0.8)); }),
      IsError(Reason::kOptimizerMismatch,
              AllOf(HasSubstr("momentum"), HasSubstr("0.9"), HasSubstr("0.8"))));
  EXPECT_THAT(others.w(), ElementsAre(3, 4));
}

TEST_F(RemoteOptimizerTest, RefusesOptionsThatTorchRefusesToo) {
  JobWorld world(Sync(1));
  Weights weights({1});
  for (const Options& options :
       {Options(-1), Options(1).momentum(-0.1), Options(1).weight_decay(-0.1),
        Options(1).nesterov(true), Options(1).nesterov(true).momentum(0.9).dampening(0.1)}) {
    EXPECT_THROW(torch::optim::SGD(weights.parameters(), options), c10::Error);
    EXPECT_THAT(ErrorOf([&] { RemoteOptimizer(world.JobOf("a"), weights, options); }),
                IsError(Reason::kBadOptimizer, _));
  }
  EXPECT_EQ(world.shard().layout(), nullptr);
}

TEST_F(RemoteOptimizerTest, RefusesAGradientThatIsNoNumberAndSaysWhere) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), {4, 5, 6});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ErrorOf([&a, nan] {
                a.Step({1, 1, nan});
              }),
              IsError(Reason::kNotFinite, HasSubstr("w[2] is nan")));
  EXPECT_THAT(ErrorOf([&a] {
                a.Step({1, -std::numeric_limits<float>::infinity(), 1});
              }),
              IsError(Reason::kNotFinite, HasSubstr("w[1] is -inf")));
  // It left no trace, and the next batch may be better.
  EXPECT_THAT(a.w(), ElementsAre(4, 5, 6));
  EXPECT_EQ(a.Step({1, 1, 1}).step, Step(1));
  EXPECT_THAT(a.w(), ElementsAre(3, 4, 5));
}

TEST_F(RemoteOptimizerTest, SaysWhichServerCannotBeReached) {
  JobFlags flags;
  flags.server = "unix:/nonexistent/server.sock";
  flags.connect_timeout = 0;
  const Job job = Job::Start(flags).value();
  Weights weights({1});
  EXPECT_THAT(ErrorOf([&] { RemoteOptimizer(job, weights, Options(1)); }),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("unix:/nonexistent/server.sock")));
}

TEST_F(RemoteOptimizerTest, ThrowsWhenTheServerIsGoneAndDoesNotWhenDestroyed) {
  JobWorld world(Sync(1));
  {
    Trainee a(world.JobOf("a", absl::Milliseconds(300)), {1});
    a.Step({1});
    world.StopServer();
    EXPECT_THAT(ErrorOf([&a] { a.Step({1}); }),
                HasCode(absl::StatusCode::kUnavailable,
                        HasSubstr("and it did not come back within 300ms")));
  }
}

// ---- Coming and going ----

TEST_F(RemoteOptimizerTest, GivesALateWorkerTheJobsParameters) {
  JobWorld world(Sync(1));
  const auto early = SeededModel("lenet", 1);
  RemoteOptimizer first(world.JobOf("early"), *early, MomentumAndDecay());
  Sampler sampler = SamplerFor(kBatch, 0, 1);
  for (int step = 0; step < 3; ++step) {
    first.zero_grad();
    Backward(*early, BatchOf(FashionMnist(), sampler.Batch(0, step)));
    first.step();
  }
  const torch::Tensor trained = Flat(*early);
  const auto late = SeededModel("lenet", 2);
  ASSERT_FALSE(Flat(*late).equal(trained));
  RemoteOptimizer second(world.JobOf("late"), *late, MomentumAndDecay());
  EXPECT_TRUE(Flat(*late).equal(trained));
  EXPECT_TRUE(Flat(*early).equal(trained));
  EXPECT_EQ(second.index(), 1u);
  // Both take part in the next step.
  InParallel({[&first] { EXPECT_EQ(first.step().step, Step(4)); },
              [&second] { EXPECT_EQ(second.step().step, Step(4)); }});
  EXPECT_TRUE(Flat(*late).equal(Flat(*early)));
}

TEST_F(RemoteOptimizerTest, IsWaitedForNoLongerOnceItIsDestroyed) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8});
  auto b = std::make_unique<Trainee>(world.JobOf("b"), Values{8});
  InParallel({[&a] { a.Step({2}); }, [&b] { b->Step({4}); }});
  b = nullptr;
  EXPECT_EQ(world.RecordOf("b").presence, Presence::kLeft);
  a.Step({1});
  EXPECT_THAT(a.w(), ElementsAre(8 - 3 - 1));
}

TEST_F(RemoteOptimizerTest, FailsIfAnExceptionDestroysIt) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8});
  const auto train = [&world, &a] {
    Trainee b(world.JobOf("b"), {8});
    InParallel({[&a] { a.Step({2}); }, [&b] { b.Step({4}); }});
    throw std::runtime_error("a bad batch");
  };
  EXPECT_THROW(train(), std::runtime_error);
  const SessionRecord record = world.RecordOf("b");
  EXPECT_EQ(record.presence, Presence::kEvicted);
  EXPECT_EQ(record.failure, "an exception has ended its training");
  a.Step({1});
  EXPECT_THAT(a.w(), ElementsAre(8 - 3 - 1));
}

TEST_F(RemoteOptimizerTest, LeavesIfItIsMadeAndDestroyedWhileAnExceptionIsHandled) {
  JobWorld world(Sync(1));
  struct Last {
    ~Last() { Trainee(job, {8}).Step({1}); }
    const Job& job;
  };
  const Job& job = world.JobOf("a");
  const auto train = [&job] {
    const Last last = {job};
    throw std::runtime_error("a bad batch");
  };
  EXPECT_THROW(train(), std::runtime_error);
  EXPECT_EQ(world.RecordOf("a").presence, Presence::kLeft);
}

TEST_F(RemoteOptimizerTest, FailsForAReasonThatItTells) {
  JobWorld world(Sync(1));
  {
    Trainee a(world.JobOf("a"), {8});
    a.Step({1});
    a.optimizer().fail(std::string(255, 'x') + "\u00e4");
  }
  EXPECT_EQ(world.RecordOf("a").failure, std::string(255, 'x'));  // not half of a character
}

TEST_F(RemoteOptimizerTest, LeavesButOnce) {
  JobWorld world(Sync(1));
  {
    Trainee a(world.JobOf("a"), {8});
    a.optimizer().leave();
    EXPECT_EQ(world.RecordOf("a").presence, Presence::kLeft);
    EXPECT_THAT(ErrorOf([&a] { a.Step({1}); }),
                HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("called after leave()")));
    EXPECT_EQ(world.shard().Describe().counters.received, 0u);
  }
  EXPECT_TRUE(world.AwaitDeserted());
}

TEST_F(RemoteOptimizerTest, AwaitsTheEndOfTrainingAndTakesTheFinalParameters) {
  ShardOptions options = Async(1);
  options.expected_workers = 2;
  JobWorld world(options);
  Trainee a(world.JobOf("a"), {8});
  Trainee b(world.JobOf("b"), {8});
  a.Step({1});
  InParallel({[&a] { a.optimizer().await_end_of_training(); },
              [&b] {
                for (int step = 0; step < 4; ++step) b.Step({1});
                b.optimizer().leave();
              }});
  EXPECT_THAT(a.w(), ElementsAre(8 - 1 - 4));
  a.optimizer().report({{"test accuracy", 0.9}, {"epochs", 3}});
  EXPECT_THAT(world.shard().results(), ElementsAre(Pair("epochs", 3), Pair("test accuracy", 0.9)));
  EXPECT_TRUE(world.AwaitDeserted());
}

TEST_F(RemoteOptimizerTest, EndsTrainingWhenAllAwaitItsEnd) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8});
  Trainee b(world.JobOf("b"), {8});
  const auto train = [](Trainee& trainee, const std::string& name) {
    trainee.Step({1});
    trainee.optimizer().await_end_of_training();
    trainee.optimizer().report({{name, 1}});
  };
  InParallel({[&] { train(a, "a"); }, [&] { train(b, "b"); }});
  EXPECT_THAT(a.w(), ElementsAre(7));
  EXPECT_THAT(b.w(), ElementsAre(7));
  EXPECT_THAT(world.shard().results(), ElementsAre(Pair("a", 1), Pair("b", 1)));
}

// The other's gradient waits for this worker's, which will not come: leaving has to complete its
// step.
TEST_F(RemoteOptimizerTest, AwaitsTheEndOfTrainingWhileAnotherWorkerWaitsForIt) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8});
  const auto b = world.JobOf("b").context().Connect().value();
  JoinRequest request = world.JobOf("b").context().Identity(SessionRole::kWorker);
  request.layout = *world.shard().layout();
  request.optimizer.options = PlainSgd();
  const Welcome welcome = b->Join(request).value();
  PushHeader header;
  header.session = welcome.session;
  header.sequence = Sequence(1);
  header.incarnation = welcome.incarnation;
  ASSERT_THAT(PushThrough(*b, header, Share({5})), Accepted(0));
  auto ended = std::async(std::launch::async, [&a] { a.optimizer().await_end_of_training(); });
  // Given the step after its gradient, b leaves too.
  PullRequest pull;
  pull.session = welcome.session;
  pull.min_step = Step(1);
  Values parameters(1);
  ASSERT_THAT(b->StartPull(pull)->Read(absl::MakeSpan(parameters)), IsOk());
  EXPECT_THAT(parameters, ElementsAre(3));
  ASSERT_THAT(b->Leave(welcome.session, {}), IsOk());
  ended.get();
  EXPECT_THAT(a.w(), ElementsAre(3));
}

TEST_F(RemoteOptimizerTest, ReportsOnceAndOnlyAfterTheEndOfTraining) {
  JobWorld world(Sync(1));
  Trainee a(world.JobOf("a"), {8});
  const auto report = [&a] { a.optimizer().report({{"test accuracy", 0.9}}); };
  EXPECT_THAT(ErrorOf(report), HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("after")));
  a.optimizer().await_end_of_training();
  EXPECT_THAT(ErrorOf(report), IsOk());
  EXPECT_THAT(ErrorOf(report), HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("once")));
}

TEST_F(RemoteOptimizerTest, EndsTheStayWhenDestroyedWithoutAReport) {
  JobWorld world(Sync(1));
  {
    Trainee a(world.JobOf("a"), {8});
    a.optimizer().await_end_of_training();
    EXPECT_EQ(world.shard().Describe().observers, 1u);
  }
  EXPECT_EQ(world.RecordOf("a-observer").presence, Presence::kLeft);
  EXPECT_TRUE(world.AwaitDeserted());
}

// The worker that joins again first has the lowest place.
TEST_F(RemoteOptimizerTest, TellsThePlaceThatItHadBeforeAStepThatIsUnderWay) {
  JobWorld world(Sync(2));
  Trainee a(world.JobOf("a"), {8});
  Weights weights({8});
  RemoteOptimizer b(world.JobOf("b"), weights, Options(1));
  world.EndLeases();
  weights.Backward({1});
  PendingStep step = b.step_async();
  while (world.shard().Describe().counters.accepted == 0) std::this_thread::yield();
  EXPECT_EQ(b.index(), 1u);
  step.wait();
  EXPECT_EQ(b.index(), 0u);
}

// ---- Other modes than sync ----

TEST_F(RemoteOptimizerTest, AsyncAppliesEveryGradientAndReportsItsStaleness) {
  JobWorld world(Async(1));
  Trainee a(world.JobOf("a"), {8});
  Trainee b(world.JobOf("b"), {8});
  const auto expect = [](const RoundReport& report, uint64_t step, uint64_t staleness) {
    EXPECT_EQ(report.disposition, Disposition::kApplied);
    EXPECT_EQ(report.step, Step(step));
    EXPECT_EQ(report.staleness, staleness);
  };
  expect(a.Step({1}), 1, 0);
  expect(a.Step({1}), 2, 0);
  expect(b.Step({1}), 3, 2);
  EXPECT_THAT(b.w(), ElementsAre(8 - 3));
  EXPECT_THAT(a.w(), ElementsAre(8 - 2));
  expect(a.Step({1}), 4, 1);
  EXPECT_THAT(a.w(), ElementsAre(8 - 4));
}

TEST_F(RemoteOptimizerTest, BoundedDropsAGradientThatIsTooOldAndRefreshesItsWorker) {
  JobWorld world(Bounded(1, /*max_staleness=*/0));
  Trainee a(world.JobOf("a"), {8});
  Trainee b(world.JobOf("b"), {8});
  a.Step({1});
  const RoundReport report = b.Step({5});
  EXPECT_EQ(report.disposition, Disposition::kStaleDropped);
  EXPECT_EQ(report.staleness, 1u);
  EXPECT_EQ(report.step, Step(1));
  EXPECT_THAT(b.w(), ElementsAre(7));
  EXPECT_EQ(b.Step({5}).disposition, Disposition::kApplied);
  EXPECT_THAT(b.w(), ElementsAre(2));
}

TEST_F(RemoteOptimizerTest, AsyncKeepsTheParametersOfAWorkerWhoseStepIsStillToComplete) {
  JobWorld world(Async(2));
  Trainee a(world.JobOf("a"), {8});
  const RoundReport first = a.Step({1});
  EXPECT_EQ(first.disposition, Disposition::kAccepted);
  EXPECT_EQ(first.step, Step(0));
  EXPECT_THAT(a.w(), ElementsAre(8));
  const RoundReport second = a.Step({3});
  EXPECT_EQ(second.disposition, Disposition::kApplied);
  EXPECT_EQ(second.step, Step(1));
  EXPECT_THAT(a.w(), ElementsAre(6));
}

// ---- Local steps: periodic and elastic averaging ----

// A worker that draws its weights to a target of its own: the gradient is w − target.
class LocalTrainee {
 public:
  LocalTrainee(const Job& job, const Values& w, const Values& target, const Options& options,
               const LocalSteps& local, const Values& buffer = {})
      : weights_(w, {}, buffer), target_(target), optimizer_(job, weights_, options, local) {}

  RoundReport Step(uint32_t samples = 1) {
    optimizer_.zero_grad();
    Values gradient = weights_.w();
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] -= target_[i];
    weights_.Backward(gradient);
    return optimizer_.step(samples);
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }

  Values w() const { return weights_.w(); }
  Weights& weights() { return weights_; }
  RemoteOptimizer& optimizer() { return optimizer_; }

 private:
  Weights weights_;
  const Values target_;
  RemoteOptimizer optimizer_;
};

// The same worker by hand, in doubles: SGD with momentum on one weight.
struct HandTrainee {
  double w = 0;
  double target = 0;
  double velocity = 0;
  bool moves = false;

  void Step(double learning_rate, double momentum) {
    const double gradient = w - target;
    velocity = moves ? momentum * velocity + gradient : gradient;
    moves = true;
    w -= learning_rate * velocity;
  }
};

// Without outer momentum, so that the mean replaces the server's parameters.
LocalSteps Every(uint32_t steps) {
  LocalSteps local;
  local.every = steps;
  local.outer_momentum = 0;
  return local;
}

// The same 20 steps on the same batches, with gradients and with parameters averaged.
TEST_F(RemoteOptimizerTest, OneLocalStepOfPlainSgdIsSync) {
  constexpr int kLocalSteps = 20;
  const auto train = [](const absl::optional<LocalSteps>& local) {
    JobWorld world(Sync(kWorkers));
    std::vector<std::shared_ptr<Classifier>> models;
    std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
    std::vector<std::function<void()>> workers;
    for (int i = 0; i < kWorkers; ++i) {
      models.push_back(SeededModel("lenet", 1));
      optimizers.push_back(std::make_unique<RemoteOptimizer>(
          world.JobOf("worker" + std::to_string(i)), *models.back(), Options(0.05), local));
      workers.push_back([&model = *models.back(), &optimizer = *optimizers.back()] {
        Sampler sampler = SamplerFor(kBatch, optimizer.index(), optimizer.workers());
        for (int step = 0; step < kLocalSteps; ++step) {
          optimizer.zero_grad();
          Backward(model, BatchOf(FashionMnist(), sampler.Batch(0, step)));
          EXPECT_EQ(optimizer.step(kBatch).step, Step(step + 1));
        }
      });
    }
    InParallel(workers);
    EXPECT_TRUE(Flat(*models[1]).equal(Flat(*models[0])));
    return Flat(*models[0]);
  };
  const torch::Tensor gradients = train(absl::nullopt);
  const torch::Tensor parameters = train(Every(1));
  EXPECT_LE((parameters - gradients).abs().max().item<double>(), 1e-6);
  EXPECT_GE((gradients - Flat(*SeededModel("lenet", 1))).abs().max().item<double>(), 1e-3);
}

// Two workers of momentum, which they keep over 3 averages of 4 steps each.
TEST_F(RemoteOptimizerTest, FourLocalStepsAreThoseOfALoopByHand) {
  const Options options = Options(0.25).momentum(0.5);
  JobWorld world(Sync(2));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, options, Every(4));
  LocalTrainee b(world.JobOf("b"), {8}, {3}, options, Every(4));
  HandTrainee x{8, 0}, y{8, 3};
  for (int round = 0; round < 3; ++round) {
    InParallel({[&a] { a.Steps(4); }, [&b] { b.Steps(4); }});
    for (int step = 0; step < 4; ++step) {
      x.Step(0.25, 0.5);
      y.Step(0.25, 0.5);
    }
    x.w = y.w = (x.w + y.w) / 2;
    EXPECT_NEAR(a.w()[0], x.w, 1e-5) << "round " << round;
    EXPECT_EQ(a.w(), b.w());
    EXPECT_EQ(world.shard().Describe().step, Step(round + 1));
  }
}

TEST_F(RemoteOptimizerTest, ASchedulerOfTorchHoldsForLocalSteps) {
  JobWorld world(Sync(1));
  Weights weights({8});
  RemoteOptimizer optimizer(world.JobOf("a"), weights, Options(1), Every(2));
  torch::optim::StepLR scheduler(optimizer, 1, 0.5);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    weights.Backward({1});
    optimizer.step();
    scheduler.step();
  }
  // The first call of torch's StepLR changes nothing.
  EXPECT_THAT(weights.w(), ElementsAre(FloatEq(8 - 1 - 1 - 0.5 - 0.25)));
}

// The local steps on the server's parameters of step s have the factor of s.
TEST_F(RemoteOptimizerTest, LocalStepsFollowTheServersSchedule) {
  ShardOptions server = Sync(1);
  server.schedule.warmup_steps = 2;
  server.schedule.kind = ScheduleKind::kStep;
  server.schedule.step_size = 1;
  server.schedule.gamma = 0.25;
  JobWorld world(server);
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(2));
  HandTrainee x{8, 0};
  for (const double factor : {0.5, 1.0, 1.0, 0.25}) {
    a.Steps(2);
    for (int step = 0; step < 2; ++step) x.Step(0.5 * factor, 0);
    EXPECT_EQ(a.w()[0], x.w) << factor;
  }
}

TEST_F(RemoteOptimizerTest, LocalStepsPushNothingInBetweenAndReportTheLastPush) {
  JobWorld world(Sync(1));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(2));
  EXPECT_EQ(a.Step().step, Step(0));
  EXPECT_EQ(world.shard().Describe().counters.received, 0u);
  EXPECT_THAT(a.w(), ElementsAre(4));
  EXPECT_EQ(a.Step().step, Step(1));
  EXPECT_EQ(a.Step().step, Step(1));
  EXPECT_EQ(a.Step().step, Step(2));
  EXPECT_EQ(world.shard().Describe().counters.accepted, 2u);
  EXPECT_THAT(a.w(), ElementsAre(0.5));
}

// Equations 5 and 6 of Zhang, Choromanska and LeCun 2015, with tau = 2, alpha = 0.25 and
// beta = p · alpha = 0.5: x_i ← x_i − alpha (x_i − c), c ← (1 − beta) c + beta · mean(x_i).
TEST_F(RemoteOptimizerTest, ElasticAveragingIsThePapersByHand) {
  LocalSteps local = Every(2);
  local.elasticity = 0.25;
  local.moving_rate = 0.5;
  JobWorld world(Sync(2));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), local);
  LocalTrainee b(world.JobOf("b"), {8}, {4}, Options(0.5), local);
  HandTrainee x{8, 0}, y{8, 4};
  double centre = 8;
  for (int round = 0; round < 4; ++round) {
    InParallel({[&a] { a.Steps(2); }, [&b] { b.Steps(2); }});
    for (int step = 0; step < 2; ++step) {
      x.Step(0.5, 0);
      y.Step(0.5, 0);
    }
    const double mean = (x.w + y.w) / 2;
    x.w -= 0.25 * (x.w - centre);
    y.w -= 0.25 * (y.w - centre);
    centre = (1 - 0.5) * centre + 0.5 * mean;
    EXPECT_NEAR(a.w()[0], x.w, 1e-5) << "round " << round;
    EXPECT_NEAR(b.w()[0], y.w, 1e-5) << "round " << round;
    EXPECT_NEAR(world.shard().store().stripe().latest()->values.span()[0], centre, 1e-5)
        << "round " << round;
  }
  EXPECT_GT(y.w - x.w, 0.5);  // they differ, as they may
}

// Algorithm 1 of Douillard et al. 2023 with SGD as its inner optimizer. In all numbers a few bits
// are set, so float32 makes them exactly.
TEST_F(RemoteOptimizerTest, WithOuterMomentumTheServerGoesOnWhereTheWorkersWent) {
  LocalSteps local = Every(2);
  local.moving_rate = 0.5;
  local.outer_momentum = 0.5;
  local.outer_nesterov = true;
  JobWorld world(Sync(2));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), local);
  LocalTrainee b(world.JobOf("b"), {8}, {4}, Options(0.5), local);
  HandTrainee x{8, 0}, y{8, 4};
  double parameter = 8, buffer = 0;
  for (int round = 0; round < 3; ++round) {
    InParallel({[&a] { a.Steps(2); }, [&b] { b.Steps(2); }});
    for (int step = 0; step < 2; ++step) {
      x.Step(0.5, 0);
      y.Step(0.5, 0);
    }
    const double gradient = parameter - (x.w + y.w) / 2;
    buffer = 0.5 * buffer + gradient;
    parameter -= 0.5 * (gradient + 0.5 * buffer);
    x.w = y.w = parameter;
    EXPECT_EQ(a.w()[0], parameter) << "round " << round;
    EXPECT_EQ(b.w()[0], parameter) << "round " << round;
  }
}

TEST_F(RemoteOptimizerTest, SeveralLocalStepsHaveAnOuterMomentumByDefault) {
  const auto momentum_of = [](const LocalSteps& local) {
    JobWorld world(Sync(1));
    const LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), local);
    return std::get<AveragingOptions>(world.shard().Describe().optimizer->options).outer_momentum;
  };
  LocalSteps local;
  local.every = 8;
  EXPECT_EQ(momentum_of(local), 0.3);
  local.outer_momentum = 0.5;
  EXPECT_EQ(momentum_of(local), 0.5);
  local.outer_momentum = 0;
  EXPECT_EQ(momentum_of(local), 0);
  local.outer_momentum = absl::nullopt;
  local.moving_rate = 0.5;
  EXPECT_EQ(momentum_of(local), 0);
  local.moving_rate = 1;
  local.elasticity = 0.5;
  EXPECT_EQ(momentum_of(local), 0);
  local.elasticity = 1;
  local.every = 1;
  EXPECT_EQ(momentum_of(local), 0);
}

// Statistics are no parameters, and not pulled at.
TEST_F(RemoteOptimizerTest, ElasticAveragingGivesEveryWorkerTheMeanOfTheStatistics) {
  LocalSteps local;
  local.elasticity = 0.25;
  local.moving_rate = 0.5;
  JobWorld world(Sync(2));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), local, {2});
  LocalTrainee b(world.JobOf("b"), {8}, {0}, Options(0.5), local, {2});
  b.weights().named_buffers()["f"].fill_(6);
  InParallel({[&a] { a.Step(); }, [&b] { b.Step(); }});
  EXPECT_THAT(a.weights().f(), ElementsAre(4));
  EXPECT_THAT(b.weights().f(), ElementsAre(4));
}

TEST_F(RemoteOptimizerTest, WeighsAnAverageByTheSamplesOfAllLocalSteps) {
  ShardOptions options = Sync(2);
  options.consistency.reduction = Reduction::kWeightedMean;
  JobWorld world(options);
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(1), Every(2));
  LocalTrainee b(world.JobOf("b"), {8}, {4}, Options(1), Every(2));
  const auto average = [&](uint32_t samples_of_a, uint32_t samples_of_b) {
    InParallel({[&] {
                  a.Step(samples_of_a);
                  a.Step(20);
                },
                [&] {
                  b.Step(samples_of_b);
                  b.Step(5);
                }});
  };
  // At their targets after one step: (30 · 0 + 10 · 4) / 40.
  average(10, 5);
  EXPECT_THAT(a.w(), ElementsAre(1));
  EXPECT_THAT(b.w(), ElementsAre(1));
  // Those of the second average alone: (24 · 0 + 8 · 4) / 32, then (30 · 0 + 10 · 4) / 40.
  average(4, 19);
  EXPECT_THAT(a.w(), ElementsAre(2));
  EXPECT_THAT(b.w(), ElementsAre(2));
}

TEST_F(RemoteOptimizerTest, LeavingPushesTheLocalStepsThatAreLeftOver) {
  JobWorld world(Sync(1));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(4));
  a.Steps(6);
  EXPECT_EQ(world.shard().Describe().step, Step(1));
  a.optimizer().leave();
  EXPECT_EQ(world.shard().Describe().step, Step(2));
  EXPECT_THAT(a.w(), ElementsAre(0.125));
  EXPECT_THAT(ValuesOf(world.shard().store().stripe().latest()->values.span()), ElementsAre(0.125));
  EXPECT_EQ(world.RecordOf("a").presence, Presence::kLeft);
}

TEST_F(RemoteOptimizerTest, AwaitingTheEndPushesTheLocalStepsThatAreLeftOver) {
  JobWorld world(Sync(1));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(4));
  a.Steps(5);
  a.optimizer().await_end_of_training();
  EXPECT_THAT(a.w(), ElementsAre(0.25));
}

TEST_F(RemoteOptimizerTest, LeavingPushesNothingIfNoLocalStepIsLeftOver) {
  JobWorld world(Sync(1));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(2));
  a.Steps(4);
  a.optimizer().leave();
  EXPECT_EQ(world.shard().Describe().counters.received, 2u);
}

TEST_F(RemoteOptimizerTest, LocalStepsAreThoseOfTheOptimizerAskedFor) {
  JobWorld world(Sync(1));
  Weights weights({8, 8});
  RemoteOptimizer optimizer(world.JobOf("a"), weights, torch::optim::AdagradOptions(0.5), Every(2));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    weights.Backward({3, -7});
    optimizer.step();
  }
  // g / √(n g²), whatever g is.
  const float way = 0.5f * (1 + std::sqrt(0.5f));
  EXPECT_THAT(weights.w(), ElementsAre(FloatEq(8 - way), FloatEq(8 + way)));
  EXPECT_EQ(weights.w(), ValuesOf(world.shard().store().stripe().latest()->values.span()));
}

TEST_F(RemoteOptimizerTest, RefusesLocalStepsOfLamb) {
  JobWorld world(Sync(1));
  Weights weights({8});
  try {
    RemoteOptimizer refused(world.JobOf("a"), weights, OptimizerConfig{LambOptions()}, Every(2));
    ADD_FAILURE() << "it was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("torch::optim, which has no LAMB"));
  }
  EXPECT_EQ(world.shard().layout(), nullptr);
}

TEST_F(RemoteOptimizerTest, RefusesAWorkerThatAveragesOtherwiseThanTheJob) {
  JobWorld world(Sync(1));
  LocalTrainee a(world.JobOf("a"), {8}, {0}, Options(0.5), Every(2));
  EXPECT_THAT(
      ErrorOf([&world] { LocalTrainee(world.JobOf("b"), {8}, {0}, Options(0.5), Every(3)); }),
      IsError(Reason::kOptimizerMismatch, HasSubstr("local_steps")));
  EXPECT_THAT(ErrorOf([&world] { Trainee(world.JobOf("c"), {8}); }),
              IsError(Reason::kOptimizerMismatch, _));
}

TEST_F(RemoteOptimizerTest, RefusesToAverageOutOfTheDomain) {
  JobWorld world(Sync(1));
  const auto with = [&world](double elasticity, double moving_rate, uint32_t every) {
    LocalSteps local;
    local.every = every;
    local.elasticity = elasticity;
    local.moving_rate = moving_rate;
    LocalTrainee(world.JobOf("a"), {8}, {0}, Options(0.5), local);
  };
  EXPECT_THAT(ErrorOf([&] { with(1, 1, 0); }),
              IsError(Reason::kBadOptimizer, HasSubstr("local_steps is 0")));
  EXPECT_THAT(ErrorOf([&] { with(1, 1.5, 1); }),
              IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is 1.5")));
  EXPECT_THROW(with(0, 1, 1), std::invalid_argument);
  EXPECT_THROW(with(1.5, 1, 1), std::invalid_argument);
  EXPECT_EQ(world.shard().layout(), nullptr);
}

TEST_F(RemoteOptimizerTest, AveragesAModelOfDoubles) {
  JobWorld world(Sync(1));
  Weights weights({8, 4});
  weights.to(torch::kFloat64);
  RemoteOptimizer optimizer(world.JobOf("a"), weights, Options(0.5), Every(2));
  const torch::Tensor w = weights.parameters()[0];
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    (w * torch::tensor({2.0, 4.0}, torch::kFloat64)).sum().backward();
    optimizer.step();
  }
  EXPECT_TRUE(w.equal(torch::tensor({6.0, 0.0}, torch::kFloat64)));
  EXPECT_THAT(ValuesOf(world.shard().store().stripe().latest()->values.span()), ElementsAre(6, 0));
}

// ---- Tensors that are no views ----

TEST_F(RemoteOptimizerTest, TrainsAModelOfDoubles) {
  JobWorld world(Sync(1));
  Weights weights({8, 4});
  weights.to(torch::kFloat64);
  RemoteOptimizer optimizer(world.JobOf("a"), weights, Options(0.5));
  const torch::Tensor w = weights.parameters()[0];
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    (w * torch::tensor({2.0, 4.0}, torch::kFloat64)).sum().backward();
    optimizer.step();
  }
  EXPECT_EQ(w.scalar_type(), torch::kFloat64);
  EXPECT_TRUE(w.equal(torch::tensor({6.0, 0.0}, torch::kFloat64)));
  EXPECT_EQ(world.shard().layout()->ranges()[0].dtype, DataType::kFloat64);
}

}  // namespace
}  // namespace sluice
