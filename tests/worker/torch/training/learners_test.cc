#include "worker/torch/training/learners.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/job_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "worker/data/batch.h"
#include "worker/data/load_dataset.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int kRounds = 30;

// The first 32 images of Fashion-MNIST's test split.
const Dataset& Images() {
  static const Dataset* const data = [] {
    auto* const images = new Dataset(LoadDataset({}, DatasetSplit::kTest).value());
    images->images.resize(size_t{32} * images->form.elements());
    images->labels.resize(32);
    return images;
  }();
  return *data;
}

Batch AllImages() {
  std::vector<int64_t> rows(Images().size());
  std::iota(rows.begin(), rows.end(), 0);
  return MakeBatch(Images(), rows);
}

LearnerOptions OptionsFor(const std::string& model) {
  LearnerOptions options;
  options.choice.model = model;
  options.choice.test = std::make_shared<const Dataset>(Images());
  SgdOptions sgd;
  sgd.learning_rate = 0.05;
  sgd.momentum = 0.9;
  options.optimizer = sgd;
  return options;
}

// The losses of `kRounds` rounds on the same batch.
std::vector<float> Losses(Learner& learner) {
  std::vector<float> losses;
  for (int round = 0; round < kRounds; ++round) {
    const auto report = learner.Learn(AllImages());
    EXPECT_THAT(report, IsOk());
    EXPECT_EQ(report->step, Step(round + 1));
    losses.push_back(report->loss);
  }
  return losses;
}

class LearnersTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LearnersTest, LearnByThemselvesWhatABatchShows) {
  const auto learner = MakeLocalLearner(OptionsFor(GetParam()));
  ASSERT_THAT(learner, IsOk());
  const double before = (*learner)->Evaluate()->metrics.at(0).value;
  const std::vector<float> losses = Losses(**learner);
  EXPECT_LT(losses.back(), losses.front() * 0.9f);
  EXPECT_GT((*learner)->Evaluate()->metrics.at(0).value, before);
  EXPECT_EQ((*learner)->place().workers, 1u);
}

TEST_P(LearnersTest, LearnTheSameWithAServer) {
  JobWorld world(Sync(1));
  const auto local = MakeLocalLearner(OptionsFor(GetParam()));
  const auto remote = MakeRemoteLearner(OptionsFor(GetParam()), world.JobOf("a"));
  ASSERT_THAT(remote, IsOk());
  const std::vector<float> alone = Losses(**local);
  const std::vector<float> served = Losses(**remote);
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_NEAR(served[round], alone[round], 1e-5 * alone[round]) << "round " << round;
  }
  ASSERT_THAT((*remote)->Finish(/*stay=*/true), IsOk());
  EXPECT_EQ((*remote)->Evaluate()->metrics.at(0).value, (*local)->Evaluate()->metrics.at(0).value);
  EXPECT_THAT((*remote)->Report({{"test accuracy", 0.5}}), IsOk());
  EXPECT_THAT(world.shard().results(), ElementsAre(Pair("test accuracy", 0.5)));
  EXPECT_TRUE(world.AwaitDeserted());
}

INSTANTIATE_TEST_SUITE_P(All, LearnersTest, ::testing::Values("lenet", "mlp"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

// The schedule is the server's there, the learner's own here.
TEST(LearnersOptimizerTest, LearnTheSameWithAServerWhateverTheOptimizer) {
  LearnerOptions options = OptionsFor("lenet");
  options.optimizer = AdamWOptions();
  options.schedule.kind = ScheduleKind::kStep;
  options.schedule.step_size = 1;
  options.schedule.gamma = 0.5;
  ShardOptions server = Sync(1);
  server.schedule = options.schedule;
  JobWorld world(server);
  const auto local = MakeLocalLearner(options);
  const auto remote = MakeRemoteLearner(options, world.JobOf("a"));
  ASSERT_THAT(remote, IsOk());
  const std::vector<float> alone = Losses(**local);
  const std::vector<float> served = Losses(**remote);
  EXPECT_NEAR(served.back(), alone.back(), 1e-4 * alone.back());
  EXPECT_LT(alone.back(), alone.front());
}

TEST(LearnersErrorsTest, LambIsRefusedWithoutAServerAndWithLocalSteps) {
  LearnerOptions options = OptionsFor("lenet");
  options.optimizer = LambOptions();
  EXPECT_THAT(MakeLocalLearner(options),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("torch::optim has no lamb")));
  options.local = LocalSteps();
  JobWorld world(Sync(1));
  EXPECT_THAT(MakeRemoteLearner(options, world.JobOf("a")),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("which has no LAMB")));
}

TEST(LearnersErrorsTest, AnUnknownModelIsRefusedWithTheNamesOfThoseKnown) {
  const auto names =
      AllOf(HasSubstr("no model \"vgg\""), HasSubstr("logistic, mlp, lenet, resnet18"));
  EXPECT_THAT(MakeLocalLearner(OptionsFor("vgg")),
              HasCode(absl::StatusCode::kInvalidArgument, names));
  JobWorld world(Sync(1));
  EXPECT_THAT(MakeRemoteLearner(OptionsFor("vgg"), world.JobOf("a")),
              HasCode(absl::StatusCode::kInvalidArgument, names));
  EXPECT_EQ(world.shard().layout(), nullptr);
}

TEST(LearnersErrorsTest, OptionsOutOfTheirDomainAreRefused) {
  LearnerOptions options = OptionsFor("lenet");
  std::get<SgdOptions>(options.optimizer).momentum = -1;
  EXPECT_THAT(MakeLocalLearner(options), IsError(Reason::kBadOptimizer, HasSubstr("momentum")));
}

TEST(LearnersErrorsTest, WhatTheServerRefusesIsAStatus) {
  JobWorld world(Sync(1));
  const auto first =
      MakeRemoteLearner(OptionsFor("lenet"), world.JobOf("a", absl::Milliseconds(300)));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(MakeRemoteLearner(OptionsFor("mlp"), world.JobOf("b")),
              IsError(Reason::kLayoutMismatch, HasSubstr("hidden.weight")));
  world.StopServer();
  EXPECT_THAT((*first)->Learn(AllImages()), HasCode(absl::StatusCode::kUnavailable, _));
}

}  // namespace
}  // namespace sluice
