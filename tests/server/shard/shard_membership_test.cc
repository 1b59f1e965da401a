// The members of a step: the start, workers that join late, and workers that are lost.

#include <utility>
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

// ---- Join ----

TEST(JoinTest, WelcomesTheFirstWorker) {
  ShardOptions options = Bounded(2, 3);
  options.incarnation = Incarnation(1);
  options.expected_workers = 5;
  ShardWorld world(options);
  const absl::StatusOr<Welcome> welcome = world.Join("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->session, SessionId(1));
  EXPECT_EQ(welcome->job_id, "job");
  EXPECT_EQ(welcome->incarnation, Incarnation(1));
  EXPECT_EQ(welcome->step, Step(0));
  EXPECT_FALSE(welcome->initialized);
  EXPECT_EQ(welcome->last_sequence, Sequence(0));
  EXPECT_EQ(welcome->consistency.mode, ConsistencyMode::kBounded);
  EXPECT_EQ(welcome->consistency.max_staleness, 3u);
  EXPECT_EQ(welcome->index, 0u);
  EXPECT_EQ(welcome->workers, 5u);
}

TEST(JoinTest, TellsLaterWorkersWhereTrainingIs) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const absl::StatusOr<Welcome> welcome = world.Join("b");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->step, Step(1));
  EXPECT_TRUE(welcome->initialized);
  EXPECT_EQ(welcome->index, 1u);
}

TEST(JoinTest, RefusesWhatDiffersFromTheJob) {
  ShardWorld world(Sync(2));
  world.Start({"a"});
  JoinRequest request = world.RequestOf("b");
  request.job_id = "other";
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kWrongJob, HasSubstr("not \"other\"")));
  request = world.RequestOf("b");
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
  request = world.RequestOf("b");
  std::get<SgdOptions>(request.optimizer.options).learning_rate = 2;
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kOptimizerMismatch, HasSubstr("learning_rate")));
  EXPECT_EQ(world.shard().Describe().workers, 1u);
}

TEST(JoinTest, RefusesMoreSessionsThanTheLimit) {
  ShardOptions options = Sync(1);
  options.max_sessions = 2;
  ShardWorld world(options);
  world.Start({"a"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  EXPECT_THAT(world.Join("b"), IsError(Reason::kTooManyWorkers, HasSubstr("limit")));
  ASSERT_THAT(world.Leave("o"), IsOk());
  EXPECT_THAT(world.Join("b"), IsOk());
}

// ---- The start ----

TEST(StartTest, TakesNoStepBeforeTheExpectedWorkersHaveJoined) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {3, 3, 3}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {6, 6, 6}), Accepted(0));
  world.Pass(absl::Hours(1000));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.shard().Describe().current.required, 3u);
}

// The first step waits for all workers, so its result must not depend on the order of joins.
TEST(StartTest, TheFirstStepHasTheGradientsOfAllExpectedWorkers) {
  ShardWorld world(Sync(3));
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {3, 3, 3}), Accepted(0));
  EXPECT_EQ(world.Join("b")->step, Step(0));
  EXPECT_THAT(world.Push("b", 0, {6, 6, 6}), Accepted(0));
  EXPECT_EQ(world.Join("c")->step, Step(0));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_THAT(world.Push("c", 0, {9, 9, 9}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-6, -6, -6));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST(StartTest, WaitsNoLongerThanItsTimeout) {
  ShardOptions options = Sync(3);
  options.start_timeout = absl::Seconds(30);
  ShardWorld world(options);
  world.Start({"a"});
  world.Pass(absl::Seconds(20));
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  world.Pass(absl::Seconds(10) - kInstant);
  EXPECT_EQ(world.step(), 0u);
  world.Pass(kInstant);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
}

TEST(StartTest, DoesNotConcernAsync) {
  ShardOptions options = Async(1);
  options.expected_workers = 3;
  ShardWorld world(options);
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
}

// ---- Workers that join late ----

TEST(LateJoinTest, MidStepTakesPartFromTheNextStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.Join("c")->step, Step(1));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_THAT(world.Push("a", 1, {3, 3, 3}), Accepted(1));
  EXPECT_THAT(world.Push("b", 1, {3, 3, 3}), Accepted(1));
  EXPECT_THAT(world.Push("c", 1, {3, 3, 3}), Applied(2));
  EXPECT_EQ(world.Counters(), "5 received: 5 accepted");
}

TEST(LateJoinTest, AtAStepBoundaryTakesPartAtOnce) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_EQ(world.Join("c")->step, Step(1));
  EXPECT_THAT(world.Push("a", 1, {3, 3, 3}), Accepted(1));
  EXPECT_THAT(world.Push("b", 1, {3, 3, 3}), Accepted(1));
  EXPECT_THAT(world.Push("c", 1, {6, 6, 6}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-7, -7, -7));
  EXPECT_EQ(world.Counters(), "5 received: 5 accepted");
}

TEST(LateJoinTest, InAsyncTakesPartAtOnce) {
  ShardWorld world(Async(2));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.Join("b")->step, Step(0));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
}

// ---- Workers that are lost ----

TEST(LostWorkerTest, IsWaitedForDuringItsLeaseAndNoLonger) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Lose("c");
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  EXPECT_THAT(world.Awaited(), ElementsAre("c"));
  world.Pass(kLease - kInstant);
  EXPECT_EQ(world.step(), 0u);
  world.Pass(kInstant);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
}

// The missing workers decide, not the number of contributions: c's gradient does not replace b's.
TEST(LostWorkerTest, ThatHadContributedLeavesTheOthersWaitedFor) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {3, 3, 3}), Accepted(0));
  ASSERT_THAT(world.Push("c", 0, {6, 6, 6}), Accepted(0));
  world.Lose("c");
  world.Pass(kLease);
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.shard().Describe().workers, 2u);
  EXPECT_EQ(world.shard().Describe().current.required, 3u);
  EXPECT_THAT(world.Awaited(), ElementsAre("b"));
  EXPECT_THAT(world.Push("b", 0, {9, 9, 9}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-6, -6, -6));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST(LostWorkerTest, LeavesItsContributionToAStepThatNobodyElseIsMissingFrom) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Accepted(0));
  world.Lose("a");
  world.Lose("b");
  world.Pass(kLease);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
  world.Pass(kLease);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1", "deserted 1"));
}

// The server's process was stopped, or had no CPU.
TEST(LostWorkerTest, IsNobodyWhomAServerThatWasAwayCouldNotHear) {
  constexpr absl::Duration kTick = absl::Milliseconds(100);
  ShardOptions options = Sync(2);
  options.tick = kTick;
  ShardWorld world(options);
  world.Start({"a", "b"});
  world.Pass(kTick);
  world.Silence("a");
  world.Lose("b");
  world.Pass(absl::Hours(1));
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  // From then on their leases run.
  for (absl::Duration heard; heard < kLease - 3 * kTick; heard += kTick) world.Pass(kTick);
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  for (int i = 0; i < 2; ++i) world.Pass(kTick);
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
  EXPECT_EQ(world.shard().Describe().workers, 0u);
}

TEST(LostWorkerTest, ThatReturnsWithinItsLeaseKeepsItsPlaceInTheStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Lose("b");
  world.Pass(kLease / 2);
  EXPECT_EQ(world.Join("b")->step, Step(0));
  world.Pass(kLease);
  EXPECT_EQ(world.step(), 0u);
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
}

TEST(LostWorkerTest, IsSucceededInTheStepByAnotherProcessOfItsName) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Applied(1));
  ASSERT_THAT(world.Push("a", 1, {2, 2, 2}), Accepted(1));
  world.Lose("b");
  const auto welcome = world.Restart("b");
  EXPECT_EQ(welcome->step, Step(1));
  EXPECT_EQ(welcome->pushes_before, 1u);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Push("b", 1, {4, 4, 4}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-6, -6, -6));
}

TEST(LostWorkerTest, ThatHadContributedIsSucceededFromTheNextStepOn) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  world.Lose("b");
  const auto welcome = world.Restart("b");
  EXPECT_EQ(welcome->step, Step(1));
  EXPECT_EQ(welcome->pushes_before, 1u);
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Awaited(), ElementsAre("a", "b"));
}

TEST(LostWorkerTest, ThatReturnsIsToldTheStepItTakesPartInNow) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  for (uint64_t step = 0; step < 5; ++step)
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  world.Lose("a");
  EXPECT_EQ(world.Join("a")->step, Step(5));
}

TEST(LostWorkerTest, ThatContributedAndReturnsIsNotAskedAgain) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Lose("a");
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.Push("a", 0, {9, 9, 9}),
              IsError(Reason::kAlreadyContributed, HasSubstr("a has contributed")));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 rejected");
}

TEST(LostWorkerTest, ThatReturnsTooLateMidStepTakesPartFromTheNextStep) {
  ShardWorld world(Sync(3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Lose("c");
  world.Pass(kLease);
  EXPECT_EQ(world.Join("c")->step, Step(1));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Awaited(), ElementsAre("a", "b", "c"));
}

TEST(LostWorkerTest, DiesMidPushAndLeavesNoTraceInTheStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  auto dying = world.Begin("b", 0);
  ASSERT_THAT(dying->Add(ChunkOf(0, {9, 9})), IsOk());
  world.shard().AbandonPush(std::move(dying), Abandoned::kAborted);
  world.Lose("b");
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Pass(kLease);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
}

}  // namespace
}  // namespace sluice
