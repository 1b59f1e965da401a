#include "server/policy/runtime_settings.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Consistency Of(ConsistencyMode mode) {
  Consistency consistency;
  consistency.mode = mode;
  return consistency;
}

// The rate is halved after every step.
LearningRateSchedule Halving() {
  LearningRateSchedule schedule;
  schedule.kind = ScheduleKind::kStep;
  schedule.step_size = 1;
  schedule.gamma = 0.5;
  return schedule;
}

OptimizerConfig Sgd(double learning_rate) {
  SgdOptions options;
  options.learning_rate = learning_rate;
  return {options};
}

RuntimeSettings Constant() {
  return RuntimeSettings(Of(ConsistencyMode::kSync), LearningRateSchedule());
}

// ---- The policy ----

TEST(RuntimeSettingsTest, HoldWhatTheyBeginWith) {
  const RuntimeSettings terms(Of(ConsistencyMode::kSsp), Halving());
  EXPECT_EQ(terms.consistency().mode, ConsistencyMode::kSsp);
  EXPECT_FALSE(terms.policy().OncePerStep());
  EXPECT_EQ(terms.schedule().gamma, 0.5);
}

TEST(RuntimeSettingsTest, ANewPolicyWaitsUntilItIsAdopted) {
  RuntimeSettings terms = Constant();
  terms.Propose(Of(ConsistencyMode::kAsync));
  EXPECT_EQ(terms.consistency().mode, ConsistencyMode::kSync);
  EXPECT_TRUE(terms.Adopt());
  EXPECT_EQ(terms.consistency().mode, ConsistencyMode::kAsync);
  EXPECT_FALSE(terms.policy().OncePerStep());
  EXPECT_FALSE(terms.Adopt());
}

TEST(RuntimeSettingsTest, OfTwoProposalsTheLaterHolds) {
  RuntimeSettings terms = Constant();
  terms.Propose(Of(ConsistencyMode::kAsync));
  terms.Propose(Of(ConsistencyMode::kBackup));
  EXPECT_TRUE(terms.Adopt());
  EXPECT_EQ(terms.consistency().mode, ConsistencyMode::kBackup);
  EXPECT_FALSE(terms.Adopt());
}

// Other objects hold references to the policy.
TEST(RuntimeSettingsTest, TheirPolicyStaysWhereItIs) {
  RuntimeSettings terms = Constant();
  const StalenessPolicy& policy = terms.policy();
  terms.Propose(Of(ConsistencyMode::kAsync));
  EXPECT_TRUE(terms.Adopt());
  EXPECT_EQ(policy.consistency().mode, ConsistencyMode::kAsync);
}

// ---- The learning rate ----

TEST(RuntimeSettingsTest, TheLearningRateIsTheOptimizersTimesTheSchedule) {
  const RuntimeSettings terms(Of(ConsistencyMode::kSync), Halving());
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(0)), 8);
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(3)), 1);
}

TEST(RuntimeSettingsTest, ANewLearningRateWaitsAndThenIsScheduledAsTheOldOne) {
  RuntimeSettings terms(Of(ConsistencyMode::kSync), Halving());
  EXPECT_THAT(terms.Propose(Sgd(8), 24), IsOk());
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(1)), 4);
  EXPECT_FALSE(terms.Adopt());  // no new policy
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(1)), 12);
  EXPECT_FALSE(terms.Adopt());
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(2)), 6);
}

TEST(RuntimeSettingsTest, TakeALearningRateOfZero) {
  RuntimeSettings terms = Constant();
  EXPECT_THAT(terms.Propose(Sgd(8), 0), IsOk());
  terms.Adopt();
  EXPECT_EQ(terms.LearningRate(Sgd(8), Step(0)), 0);
}

// A model without a group at the first rate, and one group at each of the other rates.
OptimizerConfig Grouped(double learning_rate, const std::vector<double>& groups) {
  OptimizerConfig config = Sgd(learning_rate);
  for (const double rate : groups) config.groups.push_back({{"w"}, Sgd(rate).options});
  return config;
}

TEST(RuntimeSettingsTest, TheScheduleMultipliesEachGroupsOwnRate) {
  const RuntimeSettings terms(Of(ConsistencyMode::kSync), Halving());
  EXPECT_THAT(terms.LearningRates(Sgd(8), Step(1)), ElementsAre(4));
  EXPECT_THAT(terms.LearningRates(Grouped(8, {2, 0}), Step(0)), ElementsAre(8, 2, 0));
  EXPECT_THAT(terms.LearningRates(Grouped(8, {2, 0}), Step(1)), ElementsAre(4, 1, 0));
}

TEST(RuntimeSettingsTest, ANewLearningRateTakesTheGroupsAlongInProportion) {
  RuntimeSettings terms(Of(ConsistencyMode::kSync), Halving());
  EXPECT_THAT(terms.Propose(Grouped(8, {2, 8}), 4), IsOk());
  terms.Adopt();
  EXPECT_THAT(terms.LearningRates(Grouped(8, {2, 8}), Step(0)), ElementsAre(4, 1, 4));
  EXPECT_THAT(terms.LearningRates(Grouped(8, {2, 8}), Step(1)), ElementsAre(2, 0.5, 2));
}

TEST(RuntimeSettingsTest, ANewLearningRateInPlaceOfZeroLeavesTheGroupsTheirs) {
  RuntimeSettings terms = Constant();
  EXPECT_THAT(terms.Propose(Grouped(0, {2, 0}), 4), IsOk());
  terms.Adopt();
  EXPECT_THAT(terms.LearningRates(Grouped(0, {2, 0}), Step(0)), ElementsAre(4, 2, 4));
}

TEST(RuntimeSettingsTest, RefuseALearningRateOutOfItsDomain) {
  for (const double rate :
       {-0.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    RuntimeSettings terms = Constant();
    EXPECT_THAT(terms.Propose(Sgd(8), rate),
                IsError(Reason::kBadArgument, HasSubstr(absl::StrCat("learning rate is ", rate))));
    terms.Adopt();
    EXPECT_EQ(terms.LearningRate(Sgd(8), Step(0)), 8);
  }
}

TEST(RuntimeSettingsTest, WorkersThatAverageHaveTheirOwnLearningRates) {
  RuntimeSettings terms = Constant();
  EXPECT_EQ(terms.LearningRate({AveragingOptions()}, Step(0)), 0);
  EXPECT_THAT(terms.Propose({AveragingOptions()}, 0.5),
              IsError(Reason::kBadArgument, HasSubstr("learning rates of their own")));
}

}  // namespace
}  // namespace sluice
