// A push counts at most once, only from a worker with an open session, and as a whole or not at
// all: what tests/scripts/pushes.txt cannot say, of chunks, callbacks and headers of a worker's
// past.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A chunk with `elements`, which calls `freed` when its memory is freed.
TensorChunk ChunkThatTells(const Values& elements, std::function<void()> freed) {
  TensorChunk chunk = ChunkOf(0, elements);
  chunk.owner = std::shared_ptr<const void>(
      chunk.owner.get(), [owner = chunk.owner, freed = std::move(freed)](const void*) { freed(); });
  return chunk;
}

// Whether another thread can look at the shard now, so that no thread holds its mutex.
bool CanBeDescribed(const Shard& shard) {
  const auto described = std::make_shared<absl::Notification>();
  std::thread([&shard, described] {
    shard.Describe();
    described->Notify();
  }).detach();
  return described->WaitForNotificationWithTimeout(absl::Seconds(10));
}

// ---- At most once ----

// A client that saw its connection break joins again, and sends the push again while the first
// still arrives.
TEST(DuplicateTest, OfAPushInAnEarlierSessionCountsInItsStead) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  TestStart first = world.BeginAs(world.NextHeader("a", 0));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_EQ(first.state->cancelled, 1);
  EXPECT_THAT(world.Repeat("a", 0, {1, 2, 3}), Applied(1));
  EXPECT_THAT(world.Finish(first.Take(), {1, 2, 3}),
              IsError(Reason::kUnknownSession, HasSubstr("session 1 is not open")));
  EXPECT_EQ(first.state->cancelled, 1);
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -2, -3));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
}

TEST(DuplicateTest, IsRefusedWhenItsAnswerIsNoLongerKept) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  PushHeader first = world.NextHeader("a", 0);
  ASSERT_THAT(world.PushAs(first, {1, 1, 1}), Applied(1));
  for (uint64_t step = 1; step < 16; ++step)
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  EXPECT_THAT(world.PushAs(first, {1, 1, 1}), Repeated(Disposition::kApplied, 1));
  ASSERT_THAT(world.Push("a", 16, {1, 1, 1}), Applied(17));
  EXPECT_THAT(world.PushAs(first, {1, 1, 1}),
              IsError(Reason::kSequenceTooOld, HasSubstr("push 1 comes after push 17")));
  EXPECT_THAT(world.Parameters(), ElementsAre(-17, -17, -17));
  EXPECT_EQ(world.Counters(), "19 received: 17 accepted, 1 duplicate, 1 rejected");
}

// ---- Who may push ----

TEST(FencedPushTest, OfASessionThatWasReplacedIsAborted) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const PushHeader header = world.NextHeader("a", 0);
  auto arriving = world.Begin("a", 0);
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.PushAs(header, {9, 9, 9}), IsError(Reason::kUnknownSession, HasSubstr("join")));
  EXPECT_THAT(world.Finish(std::move(arriving), {9, 9, 9}),
              IsError(Reason::kUnknownSession, HasSubstr("session 1 is not open")));
  EXPECT_THAT(world.Parameters(), ElementsAre(0, 0, 0));
  EXPECT_EQ(world.Counters(), "2 received: 2 aborted");
}

// Its turn comes after the callback in which its session is replaced.
TEST(FencedPushTest, ThatWasWholeBeforeItsSessionWasReplacedIsAborted) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  auto first = world.Begin("b", 0);
  auto whole = world.Begin("a", 0);
  ASSERT_THAT(first->Add(ChunkOf(0, {1, 1, 1})), IsOk());
  ASSERT_THAT(whole->Add(ChunkOf(0, {9, 9, 9})), IsOk());
  std::vector<absl::StatusOr<PushOutcome>> answers;
  world.shard().store().FinishPush(
      std::move(first), [&](const absl::StatusOr<PushOutcome>& outcome) {
        answers.push_back(outcome);
        world.shard().store().FinishPush(
            std::move(whole),
            [&](const absl::StatusOr<PushOutcome>& replaced) { answers.push_back(replaced); });
        EXPECT_THAT(world.Join("a"), IsOk());
      });
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0], Applied(1));
  EXPECT_THAT(answers[1], IsError(Reason::kUnknownSession, HasSubstr("join anew")));
  EXPECT_THAT(world.Repeat("a", 1, {2, 2, 2}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 aborted");
}

TEST(RefusedPushTest, EntersAMalformedHeaderInTheBooks) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_THAT(world.BeginAs(MakeError(Reason::kMissingHeader, "no header")).status(),
              IsError(Reason::kMissingHeader, HasSubstr("no header")));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

// ---- Gradients that are not added ----

// To free a large one takes long: heartbeats and headers do not wait for it, its own answer does.
TEST(DroppedGradientTest, IsFreedOutsideTheMutexBeforeItIsAnswered) {
  ShardWorld world(Backup(1, 2));
  world.Start({"a", "b"});
  std::unique_ptr<PendingPush> late = world.Begin("a", 0);
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Applied(1));
  std::vector<std::string> events;
  const auto freed = [&] {
    events.emplace_back(CanBeDescribed(world.shard()) ? "freed" : "freed under the mutex");
  };
  ASSERT_THAT(late->Add(ChunkThatTells({4, 4, 4}, freed)), IsOk());
  world.shard().store().FinishPush(std::move(late),
                                   [&](const absl::StatusOr<PushOutcome>& outcome) {
                                     EXPECT_THAT(outcome, Stale(1, 1));
                                     events.emplace_back("answered");
                                   });
  EXPECT_THAT(events, ElementsAre("freed", "answered"));
}

// ---- All or nothing ----

TEST(AtomicPushTest, AnIncompletePushLeavesNoTrace) {
  ShardWorld world(Async(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  auto dying = world.Begin("a", 0);
  ASSERT_THAT(dying->Add(ChunkOf(0, {9, 9})), IsOk());
  world.shard().store().AbandonPush(std::move(dying), Abandoned::kAborted);
  EXPECT_EQ(world.shard().Describe().current.accumulated, 1u);
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 aborted");
}

TEST(AtomicPushTest, AChunkThatOverlapsIsRejected) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  auto overlapping = world.Begin("a", 0);
  ASSERT_THAT(overlapping->Add(ChunkOf(1, {9, 9})), IsOk());
  EXPECT_THAT(world.Finish(std::move(overlapping), {9, 9}),
              IsError(Reason::kBadChunk, HasSubstr("overlaps elements from 1 on")));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -1, -1));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 rejected");
}

TEST(AtomicPushTest, ChunksMayComeInAnyOrder) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  auto push = world.Begin("a", 0);
  ASSERT_THAT(push->Add(ChunkOf(2, {3})), IsOk());
  ASSERT_THAT(push->Add(ChunkOf(1, {2})), IsOk());
  EXPECT_THAT(world.Finish(std::move(push), {1}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -2, -3));
}

// ---- What is counted ----

TEST(PushTest, CountsTheBytesThatArrivedWhateverBecameOfThem) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});  // 12
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Stale(1, 1));  // at its header
  auto broken = world.Begin("a", 1);
  ASSERT_THAT(broken->Add(ChunkOf(0, {1, 1})), IsOk());
  world.shard().store().AbandonPush(std::move(broken), Abandoned::kAborted);
  EXPECT_EQ(world.shard().Describe().traffic.bytes_received, 12u + 12u + 8u);
}

}  // namespace
}  // namespace sluice
