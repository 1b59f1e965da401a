// RemoteOptimizers whose gradients leave during backward, against a server with its real gRPC
// service.

#include <torch/torch.h>

#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "worker/torch/models/models.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

using Options = torch::optim::SGDOptions;

constexpr int64_t kWide = 700;  // a layer of kWide x kWide is nearly 2 MiB

// All that a flat model knows, in layers of some MiB: statistics, a layer under two names, a
// parameter that no loss depends on, and one of another element type.
class Mixed : public torch::nn::Module {
 public:
  Mixed()
      : first_(register_module("first", torch::nn::Linear(kWide, kWide))),
        norm_(register_module("norm", torch::nn::BatchNorm1d(kWide))),
        second_(register_module("second", torch::nn::Linear(kWide, kWide))),
        unused_(register_parameter("unused", torch::ones({600, kWide}))),
        scale_(register_parameter("scale", torch::ones({kWide}, torch::kFloat64))) {
    register_module("again", second_);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor hidden = torch::relu(norm_->forward(first_->forward(x)));
    return second_->forward(second_->forward(hidden)) * scale_.to(torch::kFloat32);
  }

 private:
  torch::nn::Linear first_;
  torch::nn::BatchNorm1d norm_;
  torch::nn::Linear second_;
  torch::Tensor unused_;
  torch::Tensor scale_;
};

// A model, and a loss that depends on the seed.
struct Subject {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(uint64_t seed)> loss;

  void Backward(uint64_t seed) const { loss(seed).backward(); }
};

Subject MixedSubject() {
  torch::manual_seed(1);
  const auto model = std::make_shared<Mixed>();
  return {model, [model](uint64_t seed) {
            torch::manual_seed(seed);
            return model->forward(torch::randn({4, kWide})).square().mean();
          }};
}

Subject ClassifierSubject(const std::string& name) {
  torch::manual_seed(1);
  const std::shared_ptr<Classifier> model = MakeModel(name);
  return {model, [model](uint64_t seed) {
            torch::manual_seed(seed);
            const torch::Tensor labels = torch::randint(10, {4}, torch::kInt64);
            return torch::nn::functional::cross_entropy(
                model->forward(torch::randn({4, 1, 28, 28})), labels);
          }};
}

// Gradients that fill a chunk only together.
Subject ThinSubject() {
  torch::manual_seed(1);
  torch::nn::Sequential layers;
  for (int i = 0; i < 8; ++i) layers->push_back(torch::nn::Linear(300, 300));
  return {layers.ptr(), [layers](uint64_t seed) mutable {
            torch::manual_seed(seed);
            return layers->forward(torch::randn({4, 300})).square().mean();
          }};
}

Subject LeNet() { return ClassifierSubject("lenet"); }
Subject ResNet() { return ClassifierSubject("resnet18"); }

// All parameters and statistics, one after the other.
torch::Tensor Flat(const torch::nn::Module& module) {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& tensor : module.parameters())
    parts.push_back(tensor.detach().flatten());
  for (const torch::Tensor& tensor : module.buffers()) parts.push_back(tensor.flatten());
  for (torch::Tensor& part : parts) part = part.to(torch::kFloat64);
  return torch::cat(parts);
}

class OverlapTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

std::unique_ptr<RemoteOptimizer> Connect(JobWorld& world, const Subject& subject,
                                         const std::string& name = "a",
                                         absl::Duration patience = absl::Seconds(30)) {
  return std::make_unique<RemoteOptimizer>(world.JobOf(name, patience), *subject.module,
                                           Options(0.01).momentum(0.9), absl::nullopt,
                                           Overlap::kBackward);
}

// Waits until the server has received something of a push that is under way.
bool AwaitArrival(JobWorld& world) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() < deadline) {
    for (const AwaitedWorker& awaited : world.shard().Describe().current.awaited) {
      if (awaited.bytes_arrived > 0) return true;
    }
  }
  return false;
}

std::string CountersOf(JobWorld& world) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (world.shard().Describe().counters.in_progress > 0 && absl::Now() < deadline) {
  }
  return Columns(world.shard().Describe().counters);
}

// ---- The same numbers ----

enum class Way { kStep, kAsync };

// What two workers in sync come to in some steps.
torch::Tensor Train(const std::function<Subject()>& make, Overlap overlap, Way way) {
  constexpr int kSteps = 3;
  JobWorld world(Sync(2));
  std::vector<Subject> subjects;
  std::vector<std::unique_ptr<RemoteOptimizer>> optimizers;
  for (const std::string name : {"a", "b"}) {
    subjects.push_back(make());
    optimizers.push_back(
        std::make_unique<RemoteOptimizer>(world.JobOf(name), *subjects.back().module,
                                          Options(0.01).momentum(0.9), absl::nullopt, overlap));
  }
  for (int step = 0; step < kSteps; ++step) {
    // LibTorch's generator is one for all threads: backward takes turns, step() does not.
    std::vector<std::future<void>> steps;
    for (size_t i = 0; i < subjects.size(); ++i) {
      optimizers[i]->zero_grad();
      subjects[i].Backward(10 * step + i);
      steps.push_back(std::async(std::launch::async, [&optimizer = *optimizers[i], way] {
        way == Way::kStep ? optimizer.step(4) : optimizer.step_async(4).wait();
      }));
    }
    for (std::future<void>& done : steps) done.get();
  }
  EXPECT_EQ(CountersOf(world), "6 received: 6 accepted");
  EXPECT_TRUE(Flat(*subjects[1].module).equal(Flat(*subjects[0].module)));
  return Flat(*subjects[0].module);
}

class OverlapBitsTest : public OverlapTest,
                        public ::testing::WithParamInterface<std::function<Subject()>> {};

TEST_P(OverlapBitsTest, AreThoseOfGradientsThatLeaveInStep) {
  const torch::Tensor expected = Train(GetParam(), Overlap::kOff, Way::kStep);
  EXPECT_TRUE(Train(GetParam(), Overlap::kBackward, Way::kStep).equal(expected));
  EXPECT_TRUE(Train(GetParam(), Overlap::kBackward, Way::kAsync).equal(expected));
  EXPECT_TRUE(Train(GetParam(), Overlap::kOff, Way::kAsync).equal(expected));
  EXPECT_FALSE(expected.equal(Flat(*GetParam()().module)));
}

INSTANTIATE_TEST_SUITE_P(All, OverlapBitsTest, ::testing::Values(&LeNet, &MixedSubject, &ResNet));

// ---- When they leave ----

class OverlapArrivalTest : public OverlapTest,
                           public ::testing::WithParamInterface<std::function<Subject()>> {};

TEST_P(OverlapArrivalTest, GradientsArriveBeforeTheStep) {
  JobWorld world(Sync(1));
  const Subject subject = GetParam()();
  const auto optimizer = Connect(world, subject);
  subject.Backward(1);
  EXPECT_TRUE(AwaitArrival(world));
  EXPECT_EQ(optimizer->step(32, 0.75f).step, Step(1));
  EXPECT_EQ(world.RecordOf("a").loss, 0.75f);
  EXPECT_EQ(CountersOf(world), "1 received: 1 accepted");
}

INSTANTIATE_TEST_SUITE_P(All, OverlapArrivalTest, ::testing::Values(&MixedSubject, &ThinSubject));

TEST_F(OverlapTest, AModelOfLittleLeavesAsAWholeAndMayAddGradientsUp) {
  JobWorld world(Sync(1));
  const Subject subject = LeNet();
  const auto optimizer = Connect(world, subject);
  subject.Backward(1);
  subject.Backward(2);
  EXPECT_EQ(optimizer->step().step, Step(1));
}

TEST_F(OverlapTest, AGradientInMemoryOfItsOwnLeavesWithTheStep) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  const auto optimizer = Connect(world, subject);
  for (const torch::Tensor& parameter : subject.module->parameters()) {
    parameter.mutable_grad() = torch::Tensor();
  }
  subject.Backward(1);
  subject.Backward(2);
  EXPECT_EQ(optimizer->step().step, Step(1));
  EXPECT_EQ(CountersOf(world), "1 received: 1 accepted");
}

TEST_F(OverlapTest, NothingLeavesForAnOptimizerThatIsGone) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  Connect(world, subject);
  subject.Backward(1);
  EXPECT_EQ(CountersOf(world), "0 received: ");
}

TEST_F(OverlapTest, LeavesTheJobInTheMiddleOfARound) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  const auto optimizer = Connect(world, subject);
  subject.Backward(1);
  ASSERT_TRUE(AwaitArrival(world));
  optimizer->leave();
  EXPECT_EQ(CountersOf(world), "1 received: 1 aborted");
}

// ---- Misuse ----

TEST_F(OverlapTest, ThrowsAtASecondBackwardAndGoesOnAfterZeroGrad) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  const auto optimizer = Connect(world, subject);
  subject.Backward(1);
  ASSERT_TRUE(AwaitArrival(world));
  try {
    subject.Backward(2);
    FAIL() << "a second backward was let through";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has changed since it left"));
    EXPECT_THAT(error.what(), HasSubstr("call zero_grad() to drop this one"));
  }
  EXPECT_THROW(optimizer->step(), std::logic_error);
  optimizer->zero_grad();
  subject.Backward(3);
  EXPECT_EQ(optimizer->step().step, Step(1));
  EXPECT_EQ(CountersOf(world), "2 received: 1 accepted, 1 aborted");
}

TEST_F(OverlapTest, ThrowsWhereAGradientWasChangedAfterItLeft) {
  const std::function<void(torch::nn::Module&)> changes[] = {
      [](torch::nn::Module& module) {
        torch::nn::utils::clip_grad_norm_(module.parameters(), 1e-12);
      },
      [](torch::nn::Module& module) {
        torch::nn::utils::clip_grad_value_(module.parameters(), 1e-12);
      },
      [](torch::nn::Module& module) {
        module.named_parameters()["second.weight"].mutable_grad().zero_();
      },
      [](torch::nn::Module& module) {
        torch::Tensor parameter = module.named_parameters()["second.weight"];
        parameter.mutable_grad() = torch::ones_like(parameter);
      }};
  for (const auto& change : changes) {
    JobWorld world(Sync(1));
    const Subject subject = MixedSubject();
    const auto optimizer = Connect(world, subject);
    subject.Backward(1);
    change(*subject.module);
    EXPECT_THROW(optimizer->step(), std::logic_error);
    EXPECT_THROW(optimizer->step_async(), std::logic_error);
    optimizer->zero_grad();
    subject.Backward(1);
    change(*subject.module);
    EXPECT_THROW(optimizer->step_async().wait(), std::logic_error);
    optimizer->zero_grad();
    subject.Backward(1);
    EXPECT_EQ(optimizer->step().step, Step(1));
  }
}

TEST_F(OverlapTest, RefusesLocalSteps) {
  JobWorld world(Sync(1));
  const Subject subject = LeNet();
  EXPECT_THROW(RemoteOptimizer(world.JobOf("a"), *subject.module, Options(0.1), LocalSteps(),
                               Overlap::kBackward),
               std::invalid_argument);
}

// ---- step_async() ----

TEST_F(OverlapTest, AnAsynchronousStepReturnsBeforeItIsMade) {
  JobWorld world(Sync(2));
  const Subject first = LeNet(), second = LeNet();
  const auto a = Connect(world, first, "a");
  const auto b = Connect(world, second, "b");
  first.Backward(1);
  PendingStep pending = a->step_async();  // "b" has contributed nothing yet
  second.Backward(2);
  EXPECT_EQ(b->step().step, Step(1));
  EXPECT_EQ(pending.wait().step, Step(1));
  EXPECT_EQ(pending.wait().step, Step(1));
  EXPECT_TRUE(Flat(*first.module).equal(Flat(*second.module)));
}

TEST_F(OverlapTest, WhateverFollowsAnAsynchronousStepWaitsForIt) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  auto optimizer = Connect(world, subject);
  subject.Backward(1);
  PendingStep pending = optimizer->step_async();
  optimizer->zero_grad();
  EXPECT_EQ(pending.wait().step, Step(1));
  subject.Backward(2);
  optimizer->step_async();
  EXPECT_EQ(optimizer->step().step, Step(3));
  optimizer->step_async();
  optimizer = nullptr;
  EXPECT_EQ(CountersOf(world), "4 received: 4 accepted");
}

TEST_F(OverlapTest, TheErrorOfAnAsynchronousStepComesWithItsWait) {
  JobWorld world(Sync(1));
  const Subject subject = LeNet();
  const auto optimizer = Connect(world, subject, "a", absl::Milliseconds(300));
  world.StopServer();
  subject.Backward(1);
  PendingStep pending = optimizer->step_async();
  EXPECT_THROW(pending.wait(), RemoteError);
  EXPECT_THROW(pending.wait(), RemoteError);
}

// ---- What breaks off ----

TEST_F(OverlapTest, APushWhoseSessionEndsDuringBackwardCountsOnce) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject(), undisturbed = MixedSubject();
  const auto optimizer = Connect(world, subject);
  subject.Backward(1);
  ASSERT_TRUE(AwaitArrival(world));
  world.EndLeases();
  // While the server still has the broken push, a worker that joins takes part from the next step.
  EXPECT_EQ(CountersOf(world), "1 received: 1 aborted");
  EXPECT_EQ(optimizer->step().step, Step(1));
  EXPECT_EQ(CountersOf(world), "2 received: 1 accepted, 1 aborted");

  JobWorld calm(Sync(1));
  const auto other = Connect(calm, undisturbed);
  undisturbed.Backward(1);
  other->step();
  EXPECT_TRUE(Flat(*subject.module).equal(Flat(*undisturbed.module)));
}

TEST_F(OverlapTest, AServerThatDiesDuringBackwardIsTold) {
  JobWorld world(Sync(1));
  const Subject subject = MixedSubject();
  const auto optimizer = Connect(world, subject, "a", absl::Milliseconds(300));
  subject.Backward(1);
  ASSERT_TRUE(AwaitArrival(world));
  world.StopServer();
  try {
    optimizer->step();
    FAIL() << "there was a server";
  } catch (const RemoteError& error) {
    EXPECT_THAT(error.status(), HasCode(absl::StatusCode::kUnavailable, _));
  }
}

}  // namespace
}  // namespace sluice
