// Initial parameters, pulls, and the snapshots that answer them: what tests/scripts/pulls.txt
// cannot say, of offers in parts, callbacks and memory.

#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto Initialized(bool accepted, uint64_t step) {
  return IsOkAndHolds(AllOf(Field("accepted", &InitializeOutcome::accepted, accepted),
                            Field("step", &InitializeOutcome::step, Step(step))));
}

// ---- Initial parameters ----

TEST(InitializeTest, ALaterOfferIsToldAtItsHeader) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto start = world.shard().store().BeginInitialize(world.session("a"));
  ASSERT_THAT(start, IsOk());
  EXPECT_EQ(start->parameters, nullptr);
  EXPECT_FALSE(start->answer.accepted);
  EXPECT_EQ(start->answer.step, Step(1));
}

TEST(InitializeTest, OfTwoConcurrentOffersTheFirstWholeOneWins) {
  ShardWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  auto of_a = std::move(world.shard().store().BeginInitialize(world.session("a"))->parameters);
  auto of_b = std::move(world.shard().store().BeginInitialize(world.session("b"))->parameters);
  ASSERT_THAT(of_a->Add(ChunkOf(0, {1, 1, 1})), IsOk());
  ASSERT_THAT(of_b->Add(ChunkOf(0, {2, 2, 2})), IsOk());
  EXPECT_THAT(FinishOffer(world.shard(), std::move(of_b)), Initialized(true, 0));
  EXPECT_THAT(FinishOffer(world.shard(), std::move(of_a)), Initialized(false, 0));
  EXPECT_THAT(world.Parameters(), ElementsAre(2, 2, 2));
}

TEST(InitializeTest, ALateOfferLeavesTheStepsThatWereTaken) {
  ShardWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  auto late = std::move(world.shard().store().BeginInitialize(world.session("a"))->parameters);
  ASSERT_THAT(late->Add(ChunkOf(0, {9, 9, 9})), IsOk());
  ASSERT_THAT(world.Initialize({0, 0, 0}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(FinishOffer(world.shard(), std::move(late)), Initialized(false, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -1, -1));
}

// ---- Pulls ----

TEST(PullTest, GetsTheLatestStepAtOnce) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), Applied(1));
  const TestPull pull = world.Pull(0);
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 1u);
  EXPECT_EQ(pull.result()->header.incarnation, Incarnation(1));
  EXPECT_FALSE(pull.result()->header.not_modified);
  EXPECT_EQ(pull.result()->snapshot->step, Step(1));
  EXPECT_THAT(pull.values(), ElementsAre(-1, -2, -3));
}

TEST(PullTest, IsNeverAnsweredOnceCancelled) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  TestPull cancelled = world.Pull(1);
  const TestPull other = world.Pull(1);
  EXPECT_TRUE(cancelled.Cancel());
  EXPECT_FALSE(cancelled.Cancel());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  world.shard().Drain();
  EXPECT_FALSE(cancelled.answered());
  EXPECT_TRUE(other.answered());
}

TEST(PullTest, CannotBeCancelledOnceAnswered) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  TestPull at_once = world.Pull(0);
  TestPull later = world.Pull(1);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_FALSE(at_once.Cancel());
  EXPECT_FALSE(later.Cancel());
}

TEST(PullTest, C12TakesOfOneStepAreAnsweredFirstInFirstOut) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  PullRequest take;
  take.session = world.session("a");
  take.min_step = Step(1);
  std::vector<int> answered;
  for (const int number : {1, 2, 3}) {
    world.shard().store().Pull(take, [&answered, number](const absl::StatusOr<PullResult>& result) {
      EXPECT_THAT(result, IsOk());
      answered.push_back(number);
    });
  }
  EXPECT_THAT(answered, IsEmpty());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(answered, ElementsAre(1, 2, 3));
}

// ---- Snapshots ----

TEST(SnapshotTest, StaysAsItIsWhileStepsAreTaken) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  std::vector<TestPull> pulls;
  for (uint64_t step = 0; step < 10; ++step) {
    pulls.push_back(world.Pull(0));
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  for (uint64_t step = 0; step < 10; ++step) {
    EXPECT_EQ(pulls[step].step(), step);
    EXPECT_EQ(pulls[step].values(), Values(3, -static_cast<float>(step)));
  }
}

TEST(SnapshotTest, IsOneForAllWhoPullTheSameStep) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull waiting = world.Pull(1);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(waiting.result()->snapshot, world.Pull(0).result()->snapshot);
  EXPECT_EQ(waiting.result()->snapshot, world.shard().store().stripe().latest());
}

TEST(SnapshotTest, NeedsTheMemoryOfTwoForAnyNumberOfSteps) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  std::set<const float*> memory;
  for (uint64_t step = 0; step < 50; ++step) {
    memory.insert(world.shard().store().stripe().latest()->values.span().data());
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  EXPECT_EQ(memory.size(), 2u);
}

}  // namespace
}  // namespace sluice
