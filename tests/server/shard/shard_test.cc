// Which gradients count, and what a step does with them.

#include "server/shard/shard.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- Sync ----

TEST(SyncShardTest, AppliesTheMeanOnceEveryWorkerHasContributed) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b", "c"});
  EXPECT_THAT(world.Push("a", 0, {3, 0, 30}), Accepted(0));
  EXPECT_THAT(world.Push("c", 0, {6, 0, 60}), Accepted(0));
  EXPECT_THAT(world.Parameters(), ElementsAre(0, 0, 0));
  EXPECT_THAT(world.Push("b", 0, {0, 3, 90}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -1, -60));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST(SyncShardTest, TakesOneStepForEveryRoundOfContributions) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  for (uint64_t step = 0; step < 20; ++step) {
    EXPECT_THAT(world.Push("a", step, {2, 4, 0}), Accepted(step));
    EXPECT_THAT(world.Push("b", step, {4, 0, 0}), Applied(step + 1));
  }
  EXPECT_EQ(world.step(), 20u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-60, -40, 0));
  EXPECT_EQ(world.Counters(), "40 received: 40 accepted");
}

TEST(SyncShardTest, RefusesASecondContributionToOneStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}),
              IsError(Reason::kAlreadyContributed, HasSubstr("a has contributed to step 0")));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 rejected");
}

TEST(SyncShardTest, RefusesASecondContributionThatBeganBeforeTheFirstCounted) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  auto first = world.Begin("a", 0);
  const TestStart second = world.BeginAs(world.NextHeader("a", 0));
  EXPECT_FALSE(second.told());
  EXPECT_THAT(world.Finish(std::move(first), {2, 2, 2}), Accepted(0));
  EXPECT_THAT(second.answer(),
              IsError(Reason::kAlreadyContributed, HasSubstr("a has contributed")));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 rejected");
}

TEST(SyncShardTest, RefusesGradientFromOlderStep) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
  EXPECT_THAT(world.Push("a", 1, {9, 9, 9}), Stale(2, 1));
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}), Stale(2, 2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.Counters(), "4 received: 2 accepted, 2 stale");
}

TEST(SyncShardTest, DropsAGradientWhoseStepWasTakenWhileItArrived) {
  ShardOptions options = Sync(2);
  options.consistency.max_step_wait = absl::Seconds(1);
  options.consistency.on_max_step_wait = StepWaitAction::kProceed;
  ShardWorld world(options);
  world.Start({"a", "b"});
  auto late = world.Begin("b", 0);
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Pass(absl::Seconds(1));
  ASSERT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Finish(std::move(late), {9, 9, 9}), Stale(1, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 stale");
}

// ---- Async ----

TEST(AsyncShardTest, AppliesEveryGradientWithAQuorumOfOne) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), Applied(1));
  EXPECT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(2, 1));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(3, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -4, -5));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST(AsyncShardTest, AppliesTheMeanOfItsQuorumWhoeverItComesFrom) {
  ShardWorld world(Async(2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Push("b", 0, {6, 6, 6}), Accepted(1, 1));
  EXPECT_THAT(world.Push("a", 1, {8, 8, 8}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-10, -10, -10));
  EXPECT_EQ(world.Counters(), "4 received: 4 accepted");
}

TEST(BoundedShardTest, AcceptsUpToMaxStalenessAndNotBeyond) {
  ShardWorld world(Bounded(1, 2));
  world.Start({"a"});
  for (uint64_t step = 0; step < 3; ++step)
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}), Stale(3, 3));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(4, 2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
  EXPECT_EQ(world.Counters(), "5 received: 4 accepted, 1 stale");
}

TEST(BoundedShardTest, DropsAGradientThatGrewTooStaleWhileItArrived) {
  ShardWorld world(Bounded(1, 1));
  world.Start({"a", "b", "c"});
  auto at_the_bound = world.Begin("a", 0);
  auto beyond = world.Begin("c", 0);
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Finish(std::move(at_the_bound), {1, 1, 1}), Applied(2, 1));
  EXPECT_THAT(world.Finish(std::move(beyond), {9, 9, 9}), Stale(2, 2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 stale");
}

TEST(AsyncShardTest, AcceptsAnyStaleness) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  for (uint64_t step = 0; step < 100; ++step) {
    ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(step + 1, step));
  }
  EXPECT_THAT(world.Parameters(), ElementsAre(-100, -100, -100));
  EXPECT_EQ(world.Counters(), "100 received: 100 accepted");
}

// ---- Steps and incarnations that are not this server's ----

TEST(ShardTest, RefusesAGradientFromAFutureStepInEveryMode) {
  for (const ShardOptions& options : {Sync(1), Backup(1, 1), Bounded(1, 5), Ssp(0, 1), Async(1)}) {
    ShardWorld world(options);
    world.Start({"a"});
    EXPECT_THAT(world.Push("a", 1, {1, 1, 1}),
                IsError(Reason::kFutureStep, HasSubstr("of step 1, the server is at step 0")));
    EXPECT_THAT(world.Parameters(), ElementsAre(0, 0, 0));
    EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
  }
}

TEST(ShardTest, TakesAGradientOfAnotherIncarnationForStaleInEveryMode) {
  for (const ShardOptions& options : {Sync(1), Backup(1, 1), Bounded(1, 5), Ssp(0, 1), Async(1)}) {
    ShardWorld world(options);
    world.Start({"a"});
    ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
    for (const uint64_t step : {0, 1, 1000}) {
      PushHeader header = world.NextHeader("a", step);
      header.incarnation = Incarnation(2);
      EXPECT_THAT(world.PushAs(header, {9, 9, 9}), Stale(1, step == 0 ? 1 : 0));
    }
    EXPECT_THAT(world.Parameters(), ElementsAre(-1, -1, -1));
    EXPECT_EQ(world.Counters(), "4 received: 1 accepted, 3 stale");
  }
}

// ---- What a step makes of gradients ----

TEST(ShardTest, SetsStatisticsToTheMeanOfWhatWasPushed) {
  ShardWorld world(Sync(2), LayoutOf({{"w", 1}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}}));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Initialize({10, 100, 200, 20}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {2, 1, 4, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 3, 8, 0}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(7, 2, 6, 19));
  ASSERT_THAT(world.Push("a", 1, {0, 5, 5, 0}), Accepted(1));
  ASSERT_THAT(world.Push("b", 1, {0, 7, 7, 0}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(7, 6, 6, 19));
}

TEST(ShardTest, AppliesTheOptimizerThatTheWorkersBrought) {
  SgdOptions sgd;
  sgd.learning_rate = 0.5;
  sgd.momentum = 0.5;
  ShardWorld world(Async(1), ParametersOnly(1), sgd);
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
  ASSERT_THAT(world.Push("a", 1, {4}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2 - 0.5 * (0.5 * 4 + 4)));
}

// ---- What is told of it ----

TEST(ShardTest, CountsTheBytesThatArrivedWhateverBecameOfThem) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});  // 12
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Stale(1, 1));  // at its header
  auto broken = world.Begin("a", 1);
  ASSERT_THAT(broken->Add(ChunkOf(0, {1, 1})), IsOk());
  world.shard().AbandonPush(std::move(broken), Abandoned::kAborted);
  EXPECT_EQ(world.shard().Describe().traffic.bytes_received, 12u + 12u + 8u);
}

TEST(ShardTest, TellsHowLongAStepTakes) {
  ShardWorld world(Async(1));
  world.Pass(absl::Hours(1));
  world.Start({"a"});
  for (uint64_t step = 0; step < 4; ++step) {
    world.Pass(absl::Seconds(3));
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  world.Pass(absl::Hours(1));
  EXPECT_EQ(world.shard().Describe().MeanStepTime(), absl::Seconds(3));
}

TEST(ShardTest, RemembersForPeopleWhatAPushToldOfItsWorker) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});
  world.Pass(absl::Seconds(5));
  PushHeader header = world.NextHeader("a", 0);
  header.loss = 0.25f;
  ASSERT_THAT(world.PushAs(header, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Stale(1, 1));
  const SessionRecord record = world.shard().Sessions().at(0);
  EXPECT_EQ(record.worker, "a");
  EXPECT_EQ(record.accepted, 1u);
  EXPECT_EQ(record.stale, 1u);
  EXPECT_EQ(record.loss, 0.25f);
  EXPECT_EQ(record.last_push, world.clock().Now());
}

}  // namespace
}  // namespace sluice
