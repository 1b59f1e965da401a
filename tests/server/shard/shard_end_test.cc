// The end of training, for one worker and for all; and the status of a shard.

#include <variant>

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

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

// ---- Workers that leave ----

TEST(LeaveTest, LetsTheStepThatWaitedForItGoOn) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  EXPECT_THAT(world.Leave("c"), IsOk());
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
}

TEST(LeaveTest, KeepsTheContributionOfTheOneThatLeaves) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOkAndHolds(0u));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(LeaveTest, HappensOnce) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.Leave("a"), IsError(Reason::kUnknownSession, HasSubstr("session 1")));
}

TEST(LeaveTest, KeepsTheResultsThatWereReported) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Leave("a", {{"test accuracy", 0.5}}), IsOk());
  ASSERT_THAT(world.Leave("b", {{"epochs", 3}}), IsOk());
  EXPECT_EQ(world.shard().results(), (Results{{"epochs", 3}, {"test accuracy", 0.5}}));
}

// ---- The end ----

TEST(FinishTest, IsAnnouncedOnceWithTheFinalStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  // The last worker that leaves completes the step. The event names the step after it.
  ASSERT_THAT(world.Leave("b"), IsOk());
  EXPECT_EQ(world.step(), 1u);
  world.Pass(absl::Hours(1));
  EXPECT_THAT(world.Heard("o"), ElementsAre("finished 1"));
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1"));
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Heard("b"), IsEmpty());
}

TEST(FinishTest, LetsObserversPullUntilTheLastHasLeft) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Observe("p"), IsOk());
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.Pull(1).values(), ElementsAre(-1, -1, -1));
  ASSERT_THAT(world.Leave("o"), IsOk());
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1"));
  ASSERT_THAT(world.Leave("p"), IsOk());
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1", "deserted 1"));
  EXPECT_THAT(world.Heard("p"), ElementsAre("finished 1"));
}

TEST(FinishTest, IsDesertedByALostObserverALeaseAfterItsEviction) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Leave("a"), IsOk());
  world.Lose("o");
  world.Pass(kLease);
  world.Pass(kLease - kInstant);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 0"));
  world.Pass(kInstant);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 0", "deserted 0"));
}

TEST(FinishTest, WaitsForTheExpectedWorkersInEveryMode) {
  for (ShardOptions options : {Sync(2), Backup(1, 2), Bounded(1, 0), Ssp(0, 2), Async(1)}) {
    options.expected_workers = 2;
    ShardWorld world(options);
    world.Start({"a"});
    ASSERT_THAT(world.Leave("a"), IsOk());
    EXPECT_THAT(world.Heard("owner"), IsEmpty());
    ASSERT_THAT(world.Join("b"), IsOk());
    ASSERT_THAT(world.Leave("b"), IsOk());
    EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 0", "deserted 0"));
  }
}

TEST(FinishTest, ComesALeaseAfterTheLastWorkerWasEvicted) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  world.Lose("a");
  world.Pass(kLease);
  EXPECT_EQ(world.shard().Describe().workers, 0u);
  world.Pass(kLease - kInstant);
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kTraining);
  world.Pass(kInstant);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 0", "deserted 0"));
}

// A machine so busy that no heartbeat is heard for a lease: the workers live, and do not know yet.
TEST(FinishTest, IsPutOffUntilWorkersThatWereAllEvictedAtOnceAreBack) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  for (const char* name : {"a", "b", "o"}) world.Silence(name);
  world.Pass(kLease);
  EXPECT_EQ(world.shard().Describe().workers, 0u);
  EXPECT_EQ(world.step(), 1u);  // with what was accepted
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), IsError(Reason::kUnknownSession, HasSubstr("join")));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 1, {2, 2, 2}), Accepted(1));
  EXPECT_THAT(world.Push("b", 1, {4, 4, 4}), Applied(2));
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  ASSERT_THAT(world.Leave("a"), IsOk());
  ASSERT_THAT(world.Leave("b"), IsOk());
  ASSERT_THAT(world.Leave("o"), IsOk());
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 2", "deserted 2"));
}

TEST(FinishTest, IsPutOffWhenTheLastOneLeavesWhileAnotherMayReturn) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(kLease);
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Leave("b"), IsOk());
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1", "deserted 1"));
}

// ---- Draining ----

TEST(DrainTest, IsToldToEveryoneWhoIsPresent) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  world.Lose("b");
  world.shard().Drain();
  EXPECT_THAT(world.Heard("a"), ElementsAre("draining 1"));
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  EXPECT_THAT(world.Heard("o"), ElementsAre("draining 1"));
  EXPECT_THAT(world.Heard("owner"), ElementsAre("draining 1"));
}

TEST(DrainTest, RefusesJoinsAndOffersOfParametersButLetsWorkersLeave) {
  ShardWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  world.shard().Drain();
  EXPECT_THAT(world.Join("b"), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Initialize({1, 1, 1}), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Leave("a"), IsOk());
}

// ---- What is told of it ----

TEST(DescribeTest, SaysWhoIsWaitedFor) {
  ShardWorld world(Sync(3));
  world.Start({"c", "a", "b"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Accepted(0));
  const ShardStatus state = world.shard().Describe();
  EXPECT_THAT(world.Awaited(), ElementsAre("a", "c"));
  EXPECT_EQ(state.current.accumulated, 1u);
  EXPECT_EQ(state.current.required, 3u);
  EXPECT_EQ(state.workers, 3u);
  EXPECT_EQ(state.observers, 1u);
  EXPECT_EQ(state.phase, Phase::kTraining);
}

TEST(DescribeTest, WaitsForNobodyInAsync) {
  ShardWorld world(Async(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world.Awaited(), IsEmpty());
  EXPECT_EQ(world.shard().Describe().current.required, 2u);
}

TEST(DescribeTest, SaysWhatIsTrained) {
  ShardWorld world(Sync(2), LayoutOf({{"w", 3}, {"b", 2}}));
  EXPECT_EQ(world.shard().layout(), nullptr);
  EXPECT_EQ(world.shard().snapshot(), nullptr);
  world.Start({"a"});
  const ShardStatus state = world.shard().Describe();
  EXPECT_EQ(state.job_id, "job");
  EXPECT_EQ(state.incarnation, Incarnation(1));
  EXPECT_EQ(state.tensors, 2u);
  EXPECT_EQ(state.elements, 5u);
  EXPECT_EQ(std::get<SgdOptions>(state.optimizer->options).learning_rate, 1);
  EXPECT_EQ(state.learning_rate, 1);
  EXPECT_EQ(world.shard().layout()->size(), 5u);
}

}  // namespace
}  // namespace sluice
