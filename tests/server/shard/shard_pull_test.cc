// Initial parameters, pulls, and the snapshots that answer them.

#include <memory>
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto Initialized(bool accepted, uint64_t step) {
  return IsOkAndHolds(AllOf(Field("accepted", &InitializeOutcome::accepted, accepted),
                            Field("step", &InitializeOutcome::step, Step(step))));
}

// ---- Initial parameters ----

TEST(InitializeTest, TheFirstOfferWins) {
  ShardWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.Initialize({1, 2, 3}), Initialized(true, 0));
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_THAT(world.Initialize({7, 7, 7}), Initialized(false, 0));
  EXPECT_THAT(world.Parameters(), ElementsAre(1, 2, 3));
}

TEST(InitializeTest, ALaterOfferIsToldAtItsHeader) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto start = world.shard().BeginInitialize(world.session("a"));
  ASSERT_THAT(start, IsOk());
  EXPECT_EQ(start->parameters, nullptr);
  EXPECT_FALSE(start->answer.accepted);
  EXPECT_EQ(start->answer.step, Step(1));
}

TEST(InitializeTest, OfTwoConcurrentOffersTheFirstWholeOneWins) {
  ShardWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  auto of_a = std::move(world.shard().BeginInitialize(world.session("a"))->parameters);
  auto of_b = std::move(world.shard().BeginInitialize(world.session("b"))->parameters);
  ASSERT_THAT(of_a->Add(ChunkOf(0, {1, 1, 1})), IsOk());
  ASSERT_THAT(of_b->Add(ChunkOf(0, {2, 2, 2})), IsOk());
  EXPECT_THAT(FinishOffer(world.shard(), std::move(of_b)), Initialized(true, 0));
  EXPECT_THAT(FinishOffer(world.shard(), std::move(of_a)), Initialized(false, 0));
  EXPECT_THAT(world.Parameters(), ElementsAre(2, 2, 2));
}

TEST(InitializeTest, ALateOfferLeavesTheStepsThatWereTaken) {
  ShardWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  auto late = std::move(world.shard().BeginInitialize(world.session("a"))->parameters);
  ASSERT_THAT(late->Add(ChunkOf(0, {9, 9, 9})), IsOk());
  ASSERT_THAT(world.Initialize({0, 0, 0}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(FinishOffer(world.shard(), std::move(late)), Initialized(false, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -1, -1));
}

TEST(InitializeTest, AnIncompleteOfferIsRefusedAndAnotherMayFollow) {
  ShardWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.Initialize({1, 2}),
              IsError(Reason::kBadChunk, HasSubstr("2 to 2 are missing")));
  EXPECT_THAT(world.Parameters(), IsEmpty());
  EXPECT_THAT(world.Initialize({1, 2, 3}), Initialized(true, 0));
}

TEST(InitializeTest, IsForWorkersWithASession) {
  ShardWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Observe("o"), IsOk());
  EXPECT_THAT(world.Initialize({1, 2, 3}), IsError(Reason::kNotAWorker, HasSubstr("observer")));
  EXPECT_THAT(world.shard().BeginInitialize(SessionId(99)).status(),
              IsError(Reason::kUnknownSession, HasSubstr("session 99")));
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

TEST(PullTest, WaitsForTheParameters) {
  ShardWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  const TestPull pull = world.Pull(0);
  EXPECT_FALSE(pull.answered());
  EXPECT_EQ(world.shard().Describe().waiting_pulls, 1u);
  ASSERT_THAT(world.Initialize({1, 2, 3}), IsOk());
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 0u);
  EXPECT_THAT(pull.values(), ElementsAre(1, 2, 3));
}

TEST(PullTest, WaitsForItsStep) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull of_one = world.Pull(1);
  const TestPull of_two = world.Pull(2);
  EXPECT_FALSE(of_one.answered());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_TRUE(of_one.answered());
  EXPECT_EQ(of_one.step(), 1u);
  EXPECT_FALSE(of_two.answered());
  ASSERT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
  ASSERT_TRUE(of_two.answered());
  EXPECT_EQ(of_two.step(), 2u);
  EXPECT_THAT(of_two.values(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.shard().Describe().waiting_pulls, 0u);
}

TEST(PullTest, WaitsForAStepThatCompletesWithoutItsLastWorker) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  const TestPull pull = world.PullAs(world.session("a"), 1);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_FALSE(pull.answered());
  world.Lose("b");
  world.Pass(absl::Seconds(10));
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 1u);
}

TEST(PullTest, EndsWithItsSession) {
  ShardWorld world(Sync(3));
  world.Start({"replaced", "leaving", "silent", "here"});
  std::vector<TestPull> pulls;
  for (const char* name : {"replaced", "leaving", "silent", "here"}) {
    pulls.push_back(world.PullAs(world.session(name), 1));
  }
  ASSERT_THAT(world.Join("replaced"), IsOk());
  EXPECT_THAT(pulls[0].result(), IsError(Reason::kUnknownSession, HasSubstr("session 1")));
  ASSERT_THAT(world.Leave("leaving"), IsOk());
  EXPECT_THAT(pulls[1].result(), IsError(Reason::kUnknownSession, HasSubstr("session 2")));
  world.Silence("silent");
  world.Pass(absl::Seconds(10));
  EXPECT_THAT(pulls[2].result(), IsError(Reason::kUnknownSession, HasSubstr("session 3")));
  EXPECT_FALSE(pulls[3].answered());
}

// A lost worker may return, and the rpc layer still holds its pull.
TEST(PullTest, OutlivesTheLossOfItsConnection) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  const TestPull pull = world.PullAs(world.session("a"), 1);
  world.Lose("a");
  EXPECT_FALSE(pull.answered());
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(pull.step(), 1u);
}

TEST(PullTest, OfTheStepThatTheCallerHasIsNotModified) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull same = world.Pull(0, 0);
  ASSERT_TRUE(same.answered());
  EXPECT_TRUE(same.result()->header.not_modified);
  EXPECT_EQ(same.step(), 0u);
  EXPECT_EQ(same.result()->snapshot, nullptr);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const TestPull older = world.Pull(0, 0);
  EXPECT_FALSE(older.result()->header.not_modified);
  EXPECT_THAT(older.values(), ElementsAre(-1, -1, -1));
}

TEST(PullTest, ThatWaitedForItsStepIsModified) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull pull = world.Pull(1, 0);
  EXPECT_FALSE(pull.answered());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_FALSE(pull.result()->header.not_modified);
  EXPECT_EQ(pull.step(), 1u);
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

TEST(PullTest, NeedsASession) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull stranger = world.PullAs(SessionId(99), 0);
  EXPECT_THAT(stranger.result(), IsError(Reason::kUnknownSession, HasSubstr("session 99")));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.Pull(0).result(), IsError(Reason::kUnknownSession, HasSubstr("session 1")));
}

TEST(PullTest, EndsWithDrainingWhenTheServerGoesDown) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const TestPull waiting = world.Pull(1);
  world.shard().Drain();
  EXPECT_THAT(waiting.result(), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Pull(0).result(), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Pull(9).result(), IsError(Reason::kDraining, HasSubstr("draining")));
}

// ---- Observers' pulls ----

TEST(ObserverPullTest, WaitsForItsStepAsAWorkers) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull pull = world.Pull(2);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_FALSE(pull.answered());
  ASSERT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 2u);
  EXPECT_FALSE(pull.result()->header.last);
}

TEST(ObserverPullTest, WaitsForNoStepThatWillNotCome) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull waiting = world.Pull(100);
  EXPECT_FALSE(waiting.answered());
  ASSERT_THAT(world.Leave("a"), IsOk());
  for (const TestPull& pull : {waiting, world.Pull(100)}) {
    ASSERT_TRUE(pull.answered());
    EXPECT_EQ(pull.step(), 1u);
    EXPECT_TRUE(pull.result()->header.last);
    EXPECT_THAT(pull.values(), ElementsAre(-1, -1, -1));
  }
}

TEST(ObserverPullTest, IsOfTheStepThatTheLastWorkerCompletesByLeaving) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull pull = world.Pull(100);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_FALSE(pull.answered());
  ASSERT_THAT(world.Leave("b"), IsOk());
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 1u);
  EXPECT_TRUE(pull.result()->header.last);
}

TEST(ObserverPullTest, GoesOnWhileTheServerDrains) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull waiting = world.Pull(100);
  world.shard().Drain();
  for (const TestPull& pull : {waiting, world.Pull(100)}) {
    ASSERT_TRUE(pull.answered());
    EXPECT_EQ(pull.step(), 1u);
    EXPECT_TRUE(pull.result()->header.last);
  }
}

TEST(ObserverPullTest, EndsWithDrainingIfThereAreNoParameters) {
  ShardWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull waiting = world.Pull(0);
  world.shard().Drain();
  EXPECT_THAT(waiting.result(), IsError(Reason::kDraining, HasSubstr("draining")));
}

// ---- What is counted ----

TEST(PullTest, CountsTheBytesItSends) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  world.Pull(0);
  world.Pull(0, 0);
  world.Pull(1);
  EXPECT_EQ(world.shard().Describe().traffic.bytes_sent, 12u);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(world.shard().Describe().traffic.bytes_sent, 24u);
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
  EXPECT_EQ(waiting.result()->snapshot, world.shard().snapshot());
}

TEST(SnapshotTest, NeedsTheMemoryOfTwoForAnyNumberOfSteps) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  std::set<const float*> memory;
  for (uint64_t step = 0; step < 50; ++step) {
    memory.insert(world.shard().snapshot()->values.span().data());
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  EXPECT_EQ(memory.size(), 2u);
}

}  // namespace
}  // namespace sluice
