// The differences between the modes: which gradients make a step, who waits, and what ends a wait.

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kWait = absl::Seconds(5);
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

ShardOptions WhenOverdue(ShardOptions options, StepWaitAction action) {
  options.consistency.max_step_wait = kWait;
  options.consistency.on_max_step_wait = action;
  return options;
}

// The worker pushes ones, `count` times, each of the latest step and a step of its own.
void PushOnes(ShardWorld& world, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t step = world.step();
    EXPECT_THAT(world.Push(name, step, {1, 1, 1}), Applied(step + 1));
  }
}

// ---- Sync ----

TEST(SyncModeTest, LetsAWorkerGoOnWhenTheStepItContributedToIsTaken) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  const TestPull of_a = world.GoOn("a");
  EXPECT_FALSE(of_a.answered());
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_EQ(of_a.step(), 1u);
  EXPECT_EQ(world.GoOn("b").step(), 1u);
}

TEST(SyncModeTest, AWorkerDoesNotGoOnBeforeItsPushIsAnswered) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  auto push = world.Begin("a", 0);
  const TestPull pull = world.GoOn("a");
  EXPECT_FALSE(pull.answered());
  ASSERT_THAT(world.Finish(std::move(push), {1, 1, 1}), Applied(1));
  EXPECT_EQ(pull.step(), 1u);
}

TEST(SyncModeTest, AnOverdueStepWaitsOnAndSaysForWhom) {
  ShardWorld world(WhenOverdue(Sync(3), StepWaitAction::kWait));
  world.Start({"a", "b", "c"});
  world.Pass(kWait);
  ASSERT_THAT(world.Push("b", 0, {3, 3, 3}), Accepted(0));
  world.Pass(kWait * 100);
  EXPECT_EQ(world.step(), 0u);
  EXPECT_THAT(world.Awaited(), ElementsAre("a", "c"));
  const StepState current = world.shard().Describe().current;
  EXPECT_EQ(current.missing, 2u);
  EXPECT_THAT(current.contributed, ElementsAre("b"));
  EXPECT_EQ(current.since, world.clock().Now() - kWait * 100);
}

TEST(SyncModeTest, AnOverdueStepProceedsWithWhatIsThere) {
  ShardWorld world(WhenOverdue(Sync(3), StepWaitAction::kProceed));
  world.Start({"a", "b", "c"});
  world.Pass(kWait);  // a step that has not begun is not late
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  const TestPull of_a = world.GoOn("a");
  world.Pass(kWait - kInstant);
  EXPECT_EQ(world.step(), 0u);
  world.Pass(kInstant);
  EXPECT_EQ(of_a.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_THAT(world.Push("c", 0, {9, 9, 9}), Stale(1, 1));
  EXPECT_EQ(world.GoOn("c").step(), 1u);
  EXPECT_EQ(world.Awaited().size(), 3u);
}

TEST(SyncModeTest, AnOverdueStepEvictsThoseWhoHoldItUp) {
  ShardWorld world(WhenOverdue(Sync(3), StepWaitAction::kEvict));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("b", 0, {3, 3, 3}), Accepted(0));
  world.Pass(kWait - kInstant);
  EXPECT_EQ(world.step(), 0u);
  world.Pass(kInstant);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  EXPECT_THAT(world.Heard("c"), ElementsAre("evicted 0"));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), IsError(Reason::kUnknownSession, HasSubstr("ended")));
  EXPECT_EQ(world.Join("a")->step, Step(1));
  EXPECT_THAT(world.Push("b", 1, {1, 1, 1}), Accepted(1));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
}

TEST(SyncModeTest, AStepIsNotLateBeforeAllHaveJoined) {
  for (const StepWaitAction action : {StepWaitAction::kProceed, StepWaitAction::kEvict}) {
    ShardWorld world(WhenOverdue(Sync(3), action));
    world.Start({"a", "b"});
    ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
    world.Pass(kWait * 100);
    EXPECT_EQ(world.step(), 0u);
    EXPECT_EQ(world.shard().Describe().workers, 2u);
  }
}

// A push that broke off is in no step, so it must not delay a worker that joins.
TEST(SyncModeTest, AStepWhoseWorkersAllStartAgainMidPushGoesOnWithThem) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  auto dying = world.Begin("a", 0);
  const absl::StatusOr<Welcome> welcome = world.Restart("a");
  world.shard().AbandonPush(std::move(dying), Abandoned::kAborted);
  const TestPull pull = world.Pull(welcome->step.value());
  world.Pass(absl::Hours(1));
  ASSERT_TRUE(pull.answered()) << "it waits for step " << welcome->step;
  EXPECT_THAT(world.Push("a", pull.step(), {1, 1, 1}), Applied(pull.step() + 1));
}

TEST(SyncModeTest, AStepGoesOnWithItsJoinersWhenItsWorkersHaveGoneWithoutATrace) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  auto dying = world.Begin("a", 0);
  const absl::StatusOr<Welcome> welcome = world.Join("b");
  world.shard().AbandonPush(std::move(dying), Abandoned::kAborted);
  ASSERT_THAT(world.Leave("a"), IsOk());
  const TestPull pull = world.Pull(welcome->step.value());
  world.Pass(absl::Hours(1));
  ASSERT_TRUE(pull.answered()) << "it waits for step " << welcome->step;
  EXPECT_THAT(world.Push("b", pull.step(), {1, 1, 1}), Applied(pull.step() + 1));
}

TEST(SyncModeTest, AWorkerThatJoinedMidStepHasNoPartInIt) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_THAT(world.Push("c", 0, {9, 9, 9}), Stale(0, 0));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(SyncModeTest, APushOnItsWayInMakesAJoinerWaitForTheNextStep) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  auto arriving = world.Begin("a", 0);
  EXPECT_EQ(world.Join("b")->step, Step(1));
  EXPECT_THAT(world.Finish(std::move(arriving), {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Awaited(), ElementsAre("a", "b"));
}

// ---- Backup ----

TEST(BackupModeTest, TheFirstOfTheWorkersMakeTheStepAndTheOthersAreStale) {
  ShardWorld world(Backup(2, 3));
  world.Start({"a", "b", "c"});
  auto slow = world.Begin("c", 0);
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.shard().Describe().current.required, 2u);
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Finish(std::move(slow), {9, 9, 9}), Stale(1, 1));
  EXPECT_EQ(world.GoOn("c").step(), 1u);
  EXPECT_THAT(world.Push("c", 1, {1, 1, 1}), Accepted(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "4 received: 3 accepted, 1 stale");
}

TEST(BackupModeTest, TakesOneContributionOfAWorker) {
  ShardWorld world(Backup(2, 3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_FALSE(world.GoOn("a").answered());
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}),
              IsError(Reason::kAlreadyContributed, HasSubstr("a has contributed to step 0")));
}

TEST(BackupModeTest, StartsOnlyWhenAllHaveJoined) {
  ShardWorld world(Backup(2, 3));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  EXPECT_EQ(world.step(), 0u);
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_EQ(world.step(), 1u);
}

TEST(BackupModeTest, NeedsNoMoreThanThereAreWorkersLeft) {
  ShardWorld world(Backup(2, 2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Leave("b"), IsOk());
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Push("a", 1, {2, 2, 2}), Applied(2));
}

// ---- Bounded and async ----

TEST(BoundedModeTest, LetsAWorkerGoOnWithWhateverStepThereIs) {
  ShardWorld world(Bounded(2, 1));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.GoOn("a").step(), 0u);
  EXPECT_THAT(world.Push("a", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Push("b", 0, {6, 6, 6}), Accepted(1, 1));
  EXPECT_THAT(world.Push("b", 1, {8, 8, 8}), Applied(2));
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}), Stale(2, 2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-10, -10, -10));
}

TEST(BoundedModeTest, AnOverdueStepProceedsWithLessThanItsQuorum) {
  ShardWorld world(WhenOverdue(Bounded(3, 1), StepWaitAction::kProceed));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Accepted(0));
  world.Pass(kWait);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(BoundedModeTest, AnOverdueStepEvictsNobodySinceNobodyInParticularHoldsItUp) {
  ShardWorld world(WhenOverdue(Bounded(3, 1), StepWaitAction::kEvict));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Pass(kWait * 2);
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.shard().Describe().workers, 2u);
}

TEST(AsyncModeTest, WhatIsLeftMakesALastSmallerStepWhenTheLastWorkerGoes) {
  ShardWorld world(Async(3));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_EQ(world.step(), 0u);
  ASSERT_THAT(world.Leave("b"), IsOk());
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1", "deserted 1"));
}

TEST(AsyncModeTest, WhatIsLeftWaitsForWorkersThatHaveYetToJoin) {
  ShardOptions options = Async(2);
  options.expected_workers = 2;
  ShardWorld world(options);
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_EQ(world.step(), 0u);
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(AsyncModeTest, PullsAreInconsistentIfAskedTo) {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  ShardWorld world(options);
  world.Start({"a"});
  EXPECT_TRUE(world.Pull(0).result()->header.inconsistent);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_TRUE(world.GoOn("a").result()->header.inconsistent);
  EXPECT_EQ(world.shard().stripe().newest(3), world.shard().snapshot());
  EXPECT_EQ(world.shard().stripe().newest(3)->step, Step(1));
}

TEST(AsyncModeTest, PullsAreConsistentUnlessAskedOtherwise) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_FALSE(world.Pull(0).result()->header.inconsistent);
}

// A worker pulls the next parameters while its push is in flight.
TEST(AsyncModeTest, AWorkerGoesOnWithTheStepThatItsOwnPushMade) {
  for (const ShardOptions& options : {Async(1), Bounded(1, 3), Ssp(3, 1)}) {
    ShardWorld world(options);
    world.Start({"a"});
    auto push = world.Begin("a", 0);
    const TestPull pull = world.GoOn("a");
    EXPECT_FALSE(pull.answered());
    ASSERT_THAT(world.Finish(std::move(push), {1, 1, 1}), Applied(1));
    ASSERT_TRUE(pull.answered());
    EXPECT_EQ(pull.step(), 1u) << ConsistencyModeName(options.consistency.mode);
  }
}

// ---- Ssp ----

TEST(SspModeTest, EveryGradientMakesAStep) {
  ShardWorld world(Ssp(1, 2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Push("b", 0, {2, 2, 2}), Applied(2, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

// It then sees the push of the slowest worker, for which it waited.
TEST(SspModeTest, AWorkerThatIsMoreThanTheSlackAheadWaitsForTheSlowest) {
  ShardWorld world(Ssp(1, 2));
  world.Start({"a", "b"});
  PushOnes(world, "a", 1);
  EXPECT_EQ(world.GoOn("a").step(), 1u);
  EXPECT_THAT(world.Awaited(), IsEmpty());
  PushOnes(world, "a", 1);
  const TestPull ahead = world.GoOn("a");
  EXPECT_FALSE(ahead.answered());
  EXPECT_THAT(world.Awaited(), ElementsAre("b"));
  EXPECT_EQ(world.GoOn("b").step(), 2u);
  PushOnes(world, "b", 1);
  EXPECT_EQ(ahead.step(), 3u);
  EXPECT_THAT(world.Awaited(), IsEmpty());
}

TEST(SspModeTest, RefusesThePushOfAWorkerThatDidNotWait) {
  ShardWorld world(Ssp(0, 2));
  world.Start({"a", "b"});
  PushOnes(world, "a", 1);
  EXPECT_THAT(
      world.Push("a", 1, {9, 9, 9}),
      IsError(Reason::kAheadOfOthers, HasSubstr("a has made 1 pushes, the slowest worker 0")));
  PushOnes(world, "b", 1);
  EXPECT_THAT(world.Repeat("a", 2, {1, 1, 1}), Applied(3));
  EXPECT_EQ(world.Counters(), "4 received: 3 accepted, 1 rejected");
}

TEST(SspModeTest, WorkersThatHaveYetToJoinHaveMadeNoPush) {
  ShardWorld world(Ssp(1, 2));
  world.Start({"a"});
  PushOnes(world, "a", 2);
  const TestPull ahead = world.GoOn("a");
  world.Pass(absl::Hours(1));
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_FALSE(ahead.answered());
  PushOnes(world, "b", 1);
  EXPECT_EQ(ahead.step(), 3u);
}

TEST(SspModeTest, AWorkerThatJoinsBeforeTheLastMayPush) {
  ShardWorld world(Ssp(1, 3));
  world.Start({"a"});
  PushOnes(world, "a", 2);
  ASSERT_THAT(world.Join("b"), IsOk());
  PushOnes(world, "b", 2);
  ASSERT_THAT(world.Join("c"), IsOk());
  PushOnes(world, "c", 2);
  EXPECT_EQ(world.step(), 6u);
}

TEST(SspModeTest, ALateJoinerHoldsNobodyUp) {
  ShardWorld world(Ssp(1, 1));
  world.Start({"a"});
  PushOnes(world, "a", 10);
  EXPECT_EQ(world.Join("late")->step, Step(10));
  PushOnes(world, "a", 1);
  EXPECT_TRUE(world.GoOn("a").answered());
  PushOnes(world, "a", 1);
  EXPECT_FALSE(world.GoOn("a").answered());
  EXPECT_THAT(world.Awaited(), ElementsAre("late"));
}

TEST(SspModeTest, WhoLeavesOrIsLostForGoodHoldsNobodyUp) {
  ShardWorld world(Ssp(0, 3));
  world.Start({"a", "leaver", "lost"});
  PushOnes(world, "a", 1);
  const TestPull ahead = world.GoOn("a");
  ASSERT_THAT(world.Leave("leaver"), IsOk());
  world.Lose("lost");
  EXPECT_FALSE(ahead.answered());
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(ahead.step(), 1u);
  PushOnes(world, "a", 5);
}

TEST(SspModeTest, AnOverdueWaitExcusesTheSlowestUntilItPushes) {
  ShardWorld world(WhenOverdue(Ssp(1, 2), StepWaitAction::kProceed));
  world.Start({"a", "b"});
  PushOnes(world, "a", 2);
  world.Pass(kWait);
  const TestPull ahead = world.GoOn("a");
  world.Pass(kWait - kInstant);
  EXPECT_FALSE(ahead.answered());
  world.Pass(kInstant);
  EXPECT_EQ(ahead.step(), 2u);
  PushOnes(world, "a", 10);
  EXPECT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(13, 12));
  PushOnes(world, "a", 2);
  EXPECT_EQ(world.shard().Describe().workers, 2u);
  PushOnes(world, "a", 1);
  EXPECT_FALSE(world.GoOn("a").answered());
  EXPECT_THAT(world.Awaited(), ElementsAre("b"));
}

TEST(SspModeTest, AnExcusedWorkerGoesOnAloneWhenTheOthersHaveLeft) {
  ShardWorld world(WhenOverdue(Ssp(1, 2), StepWaitAction::kProceed));
  world.Start({"a", "b"});
  for (int i = 0; i < 3; ++i) {
    PushOnes(world, "a", 1);
    PushOnes(world, "b", 1);
  }
  PushOnes(world, "a", 2);
  const TestPull ahead = world.GoOn("a");
  world.Pass(kWait);
  ASSERT_TRUE(ahead.answered());
  ASSERT_THAT(world.Leave("a"), IsOk());
  PushOnes(world, "b", 1);
  EXPECT_TRUE(world.GoOn("b").answered());
  PushOnes(world, "b", 5);
}

TEST(SspModeTest, AnOverdueWaitEvictsTheSlowest) {
  ShardWorld world(WhenOverdue(Ssp(0, 3), StepWaitAction::kEvict));
  world.Start({"a", "b", "c"});
  PushOnes(world, "b", 1);
  PushOnes(world, "a", 1);
  const TestPull ahead = world.GoOn("a");
  world.Pass(kWait);
  EXPECT_EQ(ahead.step(), 2u);
  EXPECT_THAT(world.Heard("c"), ElementsAre("evicted 0"));
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  EXPECT_EQ(world.shard().Describe().workers, 2u);
}

TEST(SspModeTest, AnOverdueWaitGoesOnIfItIsTo) {
  ShardWorld world(WhenOverdue(Ssp(0, 2), StepWaitAction::kWait));
  world.Start({"a", "b"});
  PushOnes(world, "a", 1);
  const TestPull ahead = world.GoOn("a");
  world.Pass(kWait * 100);
  EXPECT_FALSE(ahead.answered());
  EXPECT_THAT(world.Awaited(), ElementsAre("b"));
}

// Each wait has its own time.
TEST(SspModeTest, TheNextWaitIsCountedFromItsOwnBeginning) {
  ShardWorld world(WhenOverdue(Ssp(0, 3), StepWaitAction::kProceed));
  world.Start({"a", "b", "c"});
  PushOnes(world, "b", 1);
  PushOnes(world, "a", 1);
  const TestPull first = world.GoOn("a");
  world.Pass(kWait);
  ASSERT_TRUE(first.answered());  // c is excused
  PushOnes(world, "a", 1);
  const TestPull second = world.GoOn("a");
  world.Pass(kWait - kInstant);
  EXPECT_FALSE(second.answered());
  world.Pass(kInstant);
  EXPECT_TRUE(second.answered());
}

}  // namespace
}  // namespace sluice
