#include "server/policy/runtime_settings.h"

#include <limits>
#include <memory>
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

RuntimeSettings With(const OptimizerConfig& optimizer, const LearningRateSchedule& schedule = {}) {
  RuntimeSettings settings(Of(ConsistencyMode::kSync), schedule);
  settings.SetOptimizer(std::make_shared<const OptimizerConfig>(optimizer));
  return settings;
}

// ---- The policy ----

TEST(RuntimeSettingsTest, HoldWhatTheyBeginWith) {
  const RuntimeSettings settings(Of(ConsistencyMode::kSsp), Halving());
  EXPECT_EQ(settings.consistency().mode, ConsistencyMode::kSsp);
  EXPECT_FALSE(settings.policy().OncePerStep());
  EXPECT_EQ(settings.schedule().gamma, 0.5);
}

TEST(RuntimeSettingsTest, ANewPolicyWaitsUntilItIsAdopted) {
  RuntimeSettings settings = Constant();
  EXPECT_THAT(settings.Propose(Of(ConsistencyMode::kAsync)), IsOk());
  EXPECT_EQ(settings.consistency().mode, ConsistencyMode::kSync);
  EXPECT_TRUE(settings.Adopt());
  EXPECT_EQ(settings.consistency().mode, ConsistencyMode::kAsync);
  EXPECT_FALSE(settings.policy().OncePerStep());
  EXPECT_FALSE(settings.Adopt());
}

TEST(RuntimeSettingsTest, OfTwoProposalsTheLaterHolds) {
  RuntimeSettings settings = Constant();
  EXPECT_THAT(settings.Propose(Of(ConsistencyMode::kAsync)), IsOk());
  EXPECT_THAT(settings.Propose(Of(ConsistencyMode::kBackup)), IsOk());
  EXPECT_TRUE(settings.Adopt());
  EXPECT_EQ(settings.consistency().mode, ConsistencyMode::kBackup);
  EXPECT_FALSE(settings.Adopt());
}

// Other objects hold references to the policy.
TEST(RuntimeSettingsTest, TheirPolicyStaysWhereItIs) {
  RuntimeSettings settings = Constant();
  const StalenessPolicy& policy = settings.policy();
  EXPECT_THAT(settings.Propose(Of(ConsistencyMode::kAsync)), IsOk());
  EXPECT_TRUE(settings.Adopt());
  EXPECT_EQ(policy.consistency().mode, ConsistencyMode::kAsync);
}

// ---- The order of reduction ----

Consistency SyncIn(ReductionOrder order) {
  Consistency consistency = Of(ConsistencyMode::kSync);
  consistency.order = order;
  return consistency;
}

TEST(RuntimeSettingsTest, ANewPolicyInSyncKeepsTheOrderThatItDoesNotName) {
  for (const ReductionOrder order : {ReductionOrder::kArrival, ReductionOrder::kRank}) {
    RuntimeSettings settings(SyncIn(order), LearningRateSchedule());
    EXPECT_EQ(settings.OrderFor(ConsistencyMode::kSync), order);
    EXPECT_THAT(settings.Propose(Of(ConsistencyMode::kAsync)), IsOk());
    EXPECT_EQ(settings.OrderFor(ConsistencyMode::kSync), order);
    EXPECT_EQ(settings.OrderFor(ConsistencyMode::kBackup), ReductionOrder::kArrival);
  }
  RuntimeSettings settings(SyncIn(ReductionOrder::kRank), LearningRateSchedule());
  EXPECT_THAT(settings.Propose(SyncIn(ReductionOrder::kArrival)), IsOk());
  EXPECT_EQ(settings.OrderFor(ConsistencyMode::kSync), ReductionOrder::kArrival);
}

TEST(RuntimeSettingsTest, TheFirstPolicyInSyncHasTheOrderOfRanks) {
  RuntimeSettings settings(Of(ConsistencyMode::kAsync), LearningRateSchedule());
  EXPECT_EQ(settings.OrderFor(ConsistencyMode::kSync), ReductionOrder::kRank);
}

// ---- The learning rate ----

TEST(RuntimeSettingsTest, TheLearningRateIsTheOptimizersTimesTheSchedule) {
  const RuntimeSettings settings = With(Sgd(8), Halving());
  EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 8);
  EXPECT_EQ(settings.LearningRate(nullptr, Step(3)), 1);
}

TEST(RuntimeSettingsTest, WithoutAnOptimizerTheRatesAreZeroAndThereAreNoRules) {
  RuntimeSettings settings(Of(ConsistencyMode::kAsync), Halving());
  EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 0);
  EXPECT_EQ(settings.BaseLearningRate(), 0);
  EXPECT_FALSE(settings.rules().any());
  EXPECT_THAT(settings.Propose(2), IsOk());
  settings.Adopt();
  settings.SetOptimizer(std::make_shared<const OptimizerConfig>(Sgd(8)));
  EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 2);
  EXPECT_EQ(settings.BaseLearningRate(), 2);
}

TEST(RuntimeSettingsTest, ANewLearningRateWaitsAndThenIsScheduledAsTheOldOne) {
  RuntimeSettings settings = With(Sgd(8), Halving());
  EXPECT_THAT(settings.Propose(24), IsOk());
  EXPECT_EQ(settings.LearningRate(nullptr, Step(1)), 4);
  EXPECT_FALSE(settings.Adopt());  // no new policy
  EXPECT_EQ(settings.LearningRate(nullptr, Step(1)), 12);
  EXPECT_FALSE(settings.Adopt());
  EXPECT_EQ(settings.LearningRate(nullptr, Step(2)), 6);
}

TEST(RuntimeSettingsTest, TakeALearningRateOfZero) {
  RuntimeSettings settings = With(Sgd(8));
  EXPECT_THAT(settings.Propose(0), IsOk());
  settings.Adopt();
  EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 0);
}

// A model without a group at the first rate, and one group at each of the other rates.
OptimizerConfig Grouped(double learning_rate, const std::vector<double>& groups) {
  OptimizerConfig config = Sgd(learning_rate);
  for (const double rate : groups) config.groups.push_back({{"w"}, Sgd(rate).options});
  return config;
}

TEST(RuntimeSettingsTest, TheScheduleMultipliesEachGroupsOwnRate) {
  EXPECT_THAT(With(Sgd(8), Halving()).LearningRates(nullptr, Step(1)), ElementsAre(4));
  const RuntimeSettings settings = With(Grouped(8, {2, 0}), Halving());
  EXPECT_THAT(settings.LearningRates(nullptr, Step(0)), ElementsAre(8, 2, 0));
  EXPECT_THAT(settings.LearningRates(nullptr, Step(1)), ElementsAre(4, 1, 0));
}

TEST(RuntimeSettingsTest, ANewLearningRateTakesTheGroupsAlongInProportion) {
  RuntimeSettings settings = With(Grouped(8, {2, 8}), Halving());
  EXPECT_THAT(settings.Propose(4), IsOk());
  settings.Adopt();
  EXPECT_THAT(settings.LearningRates(nullptr, Step(0)), ElementsAre(4, 1, 4));
  EXPECT_THAT(settings.LearningRates(nullptr, Step(1)), ElementsAre(2, 0.5, 2));
}

TEST(RuntimeSettingsTest, ANewLearningRateInPlaceOfZeroLeavesTheGroupsTheirs) {
  RuntimeSettings settings = With(Grouped(0, {2, 0}));
  EXPECT_THAT(settings.Propose(4), IsOk());
  settings.Adopt();
  EXPECT_THAT(settings.LearningRates(nullptr, Step(0)), ElementsAre(4, 2, 4));
}

TEST(RuntimeSettingsTest, ChangeTheRatesOfAProgramInProportionUpToTheLargest) {
  RuntimeSettings settings = With(Grouped(8, {2}));
  const auto changed = [](double rate) { return ShareOptions({{1, SgdOptions{rate}}}); };
  EXPECT_THAT(settings.LearningRates(changed(3), Step(0)), ElementsAre(8, 3));
  EXPECT_THAT(settings.Propose(16), IsOk());
  settings.Adopt();
  EXPECT_THAT(settings.LearningRates(changed(3), Step(0)), ElementsAre(16, 6));
  EXPECT_THAT(settings.LearningRates(changed(9e5), Step(0)), ElementsAre(16, kLargestLearningRate));
}

TEST(RuntimeSettingsTest, RefuseALearningRateThatWouldMakeAGroupsAbsurd) {
  RuntimeSettings settings = With(Grouped(0.01, {1, 100}));
  EXPECT_THAT(settings.Propose(100), IsOk());  // the second group's becomes 1000000
  EXPECT_THAT(settings.Propose(101),
              IsError(Reason::kBadArgument,
                      HasSubstr("in proportion, a group's learning rate is 1.01e+06, expected")));
}

TEST(RuntimeSettingsTest, RefuseALearningRateOutOfItsDomain) {
  for (const double rate :
       {-0.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    RuntimeSettings settings = With(Sgd(8));
    EXPECT_THAT(settings.Propose(rate),
                IsError(Reason::kBadArgument, HasSubstr(absl::StrCat("learning rate is ", rate))));
    settings.Adopt();
    EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 8);
  }
}

TEST(RuntimeSettingsTest, WorkersThatAverageHaveTheirOwnLearningRates) {
  RuntimeSettings settings = With({AveragingOptions()});
  EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 0);
  EXPECT_THAT(settings.Propose(0.5),
              IsError(Reason::kBadArgument, HasSubstr("apply their own optimizers")));
}

// ---- Restored settings ----

TEST(RuntimeSettingsTest, WhatTheOperatorHadChangedStaysUnlessTheServerWasStartedOtherwise) {
  for (const ConsistencyMode started_with : {ConsistencyMode::kSync, ConsistencyMode::kSsp}) {
    RuntimeSettings settings = With(Sgd(8));
    settings.Restore(Of(ConsistencyMode::kAsync), Of(started_with), 3);
    const bool same = started_with == ConsistencyMode::kSync;
    EXPECT_EQ(settings.consistency().mode, same ? ConsistencyMode::kAsync : ConsistencyMode::kSync);
    EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 3);
    settings.Replay(Of(ConsistencyMode::kSsp), 4);
    EXPECT_EQ(settings.consistency().mode, same ? ConsistencyMode::kSsp : ConsistencyMode::kSync);
    EXPECT_EQ(settings.LearningRate(nullptr, Step(0)), 4);
  }
}

}  // namespace
}  // namespace sluice
