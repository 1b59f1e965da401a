#include "server/policy/staleness_policy.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint64_t kVeryStale = std::numeric_limits<uint64_t>::max();

constexpr ConsistencyMode kSync = ConsistencyMode::kSync;
constexpr ConsistencyMode kBackup = ConsistencyMode::kBackup;
constexpr ConsistencyMode kBounded = ConsistencyMode::kBounded;
constexpr ConsistencyMode kSsp = ConsistencyMode::kSsp;
constexpr ConsistencyMode kAsync = ConsistencyMode::kAsync;
constexpr ConsistencyMode kModes[] = {kSync, kBackup, kBounded, kSsp, kAsync};

Consistency Of(ConsistencyMode mode, uint32_t quorum = 1) {
  Consistency consistency;
  consistency.mode = mode;
  consistency.quorum = quorum;
  if (mode == kBounded) consistency.max_staleness = 3;
  return consistency;
}

StalenessPolicy Policy(ConsistencyMode mode, uint32_t quorum = 1) {
  return StalenessPolicy(Of(mode, quorum));
}

StalenessPolicy Bounded(uint32_t max_staleness) {
  Consistency consistency = Of(kBounded);
  consistency.max_staleness = max_staleness;
  return StalenessPolicy(consistency);
}

StalenessPolicy Ssp(uint32_t slack) {
  Consistency consistency = Of(kSsp);
  consistency.slack = slack;
  return StalenessPolicy(consistency);
}

StalenessPolicy WhenOverdue(ConsistencyMode mode, StepWaitAction action) {
  Consistency consistency = Of(mode, mode == kSync || mode == kSsp ? 1 : 3);
  consistency.on_max_step_wait = action;
  return StalenessPolicy(consistency);
}

StepProgress Started(uint32_t accumulated, uint32_t members, uint32_t missing) {
  StepProgress progress;
  progress.started = true;
  progress.accumulated = accumulated;
  progress.members = members;
  progress.missing = missing;
  return progress;
}

StepProgress NotStarted(uint32_t accumulated, uint32_t members, uint32_t missing) {
  StepProgress progress = Started(accumulated, members, missing);
  progress.started = false;
  return progress;
}

StepProgress Overdue(StepProgress progress) {
  progress.overdue = true;
  return progress;
}

StepProgress Skipped(StepProgress progress, uint32_t skipped) {
  progress.skipped = skipped;
  return progress;
}

// A step whose slowest member has made `slowest` pushes.
StepProgress Slowest(uint64_t pushes) {
  StepProgress progress = Started(0, 3, 3);
  progress.slowest = pushes;
  return progress;
}

WorkerProgress After(uint64_t pushes) { return {false, pushes}; }

// ---- All modes ----

TEST(StalenessPolicyTest, NoModeMakesAStepOfNothing) {
  for (const ConsistencyMode mode : kModes) {
    EXPECT_FALSE(Policy(mode).Completes(Started(0, 2, 2)));
    EXPECT_FALSE(Policy(mode).Completes(Started(0, 0, 0)));
    EXPECT_FALSE(WhenOverdue(mode, StepWaitAction::kProceed).Completes(Overdue(Started(0, 2, 2))));
  }
}

TEST(StalenessPolicyTest, WhatWasAcceptedIsNotLostWhenNobodyIsLeftInAnyMode) {
  for (const ConsistencyMode mode : {kBackup, kBounded, kAsync}) {
    EXPECT_TRUE(Policy(mode, 5).Completes(Started(1, 0, 0)));
    EXPECT_FALSE(Policy(mode, 5).Completes(NotStarted(1, 0, 0)));
  }
  EXPECT_TRUE(Policy(kSync).Completes(Started(1, 0, 0)));
  EXPECT_FALSE(Policy(kSync).Completes(NotStarted(1, 0, 0)));
}

TEST(StalenessPolicyTest, OnlySspHasWorkersWaitForTheSlowest) {
  for (const ConsistencyMode mode : {kSync, kBackup, kBounded, kAsync}) {
    EXPECT_FALSE(Policy(mode).IsAhead(After(1000), Slowest(0)));
  }
}

TEST(StalenessPolicyTest, InSyncAndBackupAWorkerContributesOnceAndJoinsAtABoundary) {
  for (const ConsistencyMode mode : kModes) {
    const bool once = mode == kSync || mode == kBackup;
    EXPECT_EQ(Policy(mode).OncePerStep(), once);
    EXPECT_EQ(Policy(mode).JoinsAtStepBoundary(), once);
  }
}

TEST(StalenessPolicyTest, InSyncAndBackupAWorkerGoesOnWithAStepItIsNotInYet) {
  for (const ConsistencyMode mode : {kSync, kBackup}) {
    EXPECT_FALSE(Policy(mode).MayProceed({true, 5}, Slowest(0)));
    EXPECT_TRUE(Policy(mode).MayProceed({false, 5}, Slowest(0)));
  }
}

TEST(StalenessPolicyTest, InBoundedAndAsyncAWorkerGoesOnAtOnce) {
  for (const ConsistencyMode mode : {kBounded, kAsync}) {
    EXPECT_TRUE(Policy(mode).MayProceed({true, 5}, Slowest(0)));
    EXPECT_TRUE(Policy(mode).MayProceed({false, 5}, Slowest(0)));
  }
}

TEST(StalenessPolicyTest, KeepsItsConsistency) {
  EXPECT_EQ(Policy(kBackup, 7).consistency().quorum, 7u);
}

// ---- Sync ----

TEST(SyncPolicyTest, AdmitsFreshGradientsOnly) {
  EXPECT_TRUE(Policy(kSync).Admits(0));
  EXPECT_FALSE(Policy(kSync).Admits(1));
  EXPECT_FALSE(Policy(kSync).Admits(kVeryStale));
}

TEST(SyncPolicyTest, CompletesWhenNobodyIsMissing) {
  EXPECT_FALSE(Policy(kSync).Completes(Started(2, 3, 1)));
  EXPECT_TRUE(Policy(kSync).Completes(Started(3, 3, 0)));
}

// The missing workers decide, not the number of gradients, which may come from workers that left.
TEST(SyncPolicyTest, WaitsForWhoIsMissingHoweverManyHaveContributed) {
  EXPECT_FALSE(Policy(kSync).Completes(Started(5, 1, 1)));
  EXPECT_TRUE(Policy(kSync).Completes(Started(1, 3, 0)));
}

TEST(SyncPolicyTest, CompletesNoStepBeforeTheStart) {
  EXPECT_FALSE(Policy(kSync).Completes(NotStarted(1, 1, 0)));
  EXPECT_FALSE(WhenOverdue(kSync, StepWaitAction::kProceed).Completes(NotStarted(1, 1, 0)));
}

TEST(SyncPolicyTest, TakesASkippedGradientForAContribution) {
  EXPECT_TRUE(Policy(kSync).Completes(Skipped(Started(2, 3, 0), 1)));
  EXPECT_TRUE(Policy(kSync).Completes(Skipped(Started(0, 3, 0), 3)));
  EXPECT_FALSE(Policy(kSync).Completes(Skipped(Started(0, 3, 1), 2)));
}

TEST(SyncPolicyTest, RequiresWhatHasComeAndWhatIsMissing) {
  EXPECT_EQ(Policy(kSync).Required(Started(1, 3, 2)), 3u);
  EXPECT_EQ(Policy(kSync).Required(Started(3, 1, 1)), 4u);
  EXPECT_EQ(Policy(kSync).Required(Skipped(Started(1, 3, 1), 1)), 2u);
}

// ---- Backup ----

TEST(BackupPolicyTest, AdmitsFreshGradientsOnly) {
  EXPECT_TRUE(Policy(kBackup, 2).Admits(0));
  EXPECT_FALSE(Policy(kBackup, 2).Admits(1));
}

TEST(BackupPolicyTest, CompletesWithTheFirstOfItsWorkers) {
  EXPECT_FALSE(Policy(kBackup, 2).Completes(Started(1, 3, 2)));
  EXPECT_TRUE(Policy(kBackup, 2).Completes(Started(2, 3, 1)));
}

TEST(BackupPolicyTest, CompletesWithAllWorkersIfTheyAreFewerThanTheQuorum) {
  EXPECT_TRUE(Policy(kBackup, 5).Completes(Started(3, 3, 0)));
  EXPECT_FALSE(Policy(kBackup, 5).Completes(Started(3, 4, 1)));
}

TEST(BackupPolicyTest, CompletesNoStepBeforeTheStart) {
  EXPECT_FALSE(Policy(kBackup, 2).Completes(NotStarted(2, 2, 0)));
}

// A skipped push means that the worker is done; it is no gradient.
TEST(BackupPolicyTest, ASkippedGradientIsNoneOfTheQuorum) {
  EXPECT_FALSE(Policy(kBackup, 2).Completes(Skipped(Started(1, 3, 1), 1)));
  EXPECT_TRUE(Policy(kBackup, 2).Completes(Skipped(Started(1, 3, 0), 2)));
}

TEST(BackupPolicyTest, RequiresItsQuorumOrAllThatThereAre) {
  EXPECT_EQ(Policy(kBackup, 2).Required(Started(1, 3, 2)), 2u);
  EXPECT_EQ(Policy(kBackup, 5).Required(Started(1, 3, 2)), 3u);
}

// ---- Bounded and async ----

TEST(BoundedPolicyTest, AdmitsUpToTheBoundAndNotBeyond) {
  EXPECT_TRUE(Bounded(3).Admits(0));
  EXPECT_TRUE(Bounded(3).Admits(3));
  EXPECT_FALSE(Bounded(3).Admits(4));
  EXPECT_FALSE(Bounded(3).Admits(kVeryStale));
  EXPECT_TRUE(Bounded(0).Admits(0));
  EXPECT_FALSE(Bounded(0).Admits(1));
}

TEST(AsyncPolicyTest, AdmitsAnything) { EXPECT_TRUE(Policy(kAsync).Admits(kVeryStale)); }

TEST(AsyncPolicyTest, CompletesAtItsQuorumWhoeverIsMissing) {
  for (const ConsistencyMode mode : {kBounded, kAsync}) {
    EXPECT_FALSE(Policy(mode, 2).Completes(Started(1, 3, 3)));
    EXPECT_FALSE(Policy(mode, 2).Completes(Started(1, 1, 0)));
    EXPECT_TRUE(Policy(mode, 2).Completes(Started(2, 3, 3)));
    EXPECT_TRUE(Policy(mode, 2).Completes(NotStarted(2, 1, 1)));
  }
}

TEST(AsyncPolicyTest, ASkippedGradientIsNoneOfTheQuorum) {
  for (const ConsistencyMode mode : {kBounded, kSsp, kAsync}) {
    EXPECT_FALSE(Policy(mode, 1).Completes(Skipped(Started(0, 3, 2), 1)));
    EXPECT_FALSE(Policy(mode, 1).Completes(Skipped(Started(0, 0, 0), 1)));
  }
}

TEST(AsyncPolicyTest, RequiresItsQuorum) {
  for (const ConsistencyMode mode : {kBounded, kAsync}) {
    EXPECT_EQ(Policy(mode, 2).Required(Started(1, 3, 3)), 2u);
    EXPECT_EQ(Policy(mode, 2).Required(NotStarted(0, 5, 5)), 2u);
  }
}

// ---- Ssp ----

TEST(SspPolicyTest, AdmitsAnythingAndMakesAStepOfEveryGradient) {
  EXPECT_TRUE(Ssp(0).Admits(kVeryStale));
  EXPECT_TRUE(Ssp(0).Completes(Started(1, 3, 2)));
  EXPECT_TRUE(Ssp(0).Completes(NotStarted(1, 1, 0)));
  EXPECT_EQ(Ssp(5).Required(Started(0, 3, 3)), 1u);
}

TEST(SspPolicyTest, HasAWorkerWaitOnceItIsMoreThanTheSlackAhead) {
  EXPECT_FALSE(Ssp(2).IsAhead(After(7), Slowest(5)));
  EXPECT_TRUE(Ssp(2).IsAhead(After(8), Slowest(5)));
  EXPECT_FALSE(Ssp(0).IsAhead(After(5), Slowest(5)));
  EXPECT_TRUE(Ssp(0).IsAhead(After(6), Slowest(5)));
}

TEST(SspPolicyTest, LetsAWorkerGoOnUnlessItIsAheadWhetherItContributedOrNot) {
  for (const bool contributed : {false, true}) {
    EXPECT_TRUE(Ssp(2).MayProceed({contributed, 7}, Slowest(5)));
    EXPECT_FALSE(Ssp(2).MayProceed({contributed, 8}, Slowest(5)));
  }
}

// The operator may write any slack. The largest number means no bound.
TEST(SspPolicyTest, TakesTheLargestSlackForNoBound) {
  EXPECT_FALSE(Ssp(4294967295u).IsAhead(After(4294967295u), Slowest(0)));
}

// ---- Overdue steps ----

TEST(OverdueStepTest, IsMadeOfWhatIsThereIfItIsToProceed) {
  for (const ConsistencyMode mode : {kSync, kBackup, kBounded, kAsync}) {
    const StalenessPolicy policy = WhenOverdue(mode, StepWaitAction::kProceed);
    EXPECT_FALSE(policy.Completes(Started(1, 5, 4)));
    EXPECT_TRUE(policy.Completes(Overdue(Started(1, 5, 4))));
  }
}

TEST(OverdueStepTest, WaitsOnOtherwise) {
  for (const ConsistencyMode mode : {kSync, kBackup, kBounded, kAsync}) {
    for (const StepWaitAction action : {StepWaitAction::kWait, StepWaitAction::kEvict}) {
      EXPECT_FALSE(WhenOverdue(mode, action).Completes(Overdue(Started(1, 5, 4))));
    }
  }
}

TEST(OverdueStepTest, OfSkippedGradientsAloneProceedsWhereTheyStandForWorkers) {
  EXPECT_TRUE(WhenOverdue(kSync, StepWaitAction::kProceed)
                  .Completes(Overdue(Skipped(Started(0, 3, 2), 1))));
  EXPECT_FALSE(WhenOverdue(kAsync, StepWaitAction::kProceed)
                   .Completes(Overdue(Skipped(Started(0, 3, 2), 1))));
}

}  // namespace
}  // namespace sluice
