// What counts against a worker that others wait for, and against its lease: the time in which the
// worker itself could have acted. Time in which this server did not run, had no room, or worked
// does not count.

#include <utility>
#include <vector>

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
using ::testing::IsEmpty;

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kWait = absl::Seconds(5);
constexpr absl::Duration kLease = absl::Seconds(10);

ShardOptions Evicting(ShardOptions options) {
  options.tick = kTick;
  options.consistency.max_step_wait = kWait;
  options.consistency.on_max_step_wait = StepWaitAction::kEvict;
  return options;
}

ShardOptions Proceeding(ShardOptions options) {
  options = Evicting(options);
  options.consistency.on_max_step_wait = StepWaitAction::kProceed;
  return options;
}

ShardOptions WithLittleRoom(ShardOptions options) {
  options.max_in_flight_bytes = 1;  // three vectors fit always
  return options;
}

// The server runs for that time: it ticks.
void RunFor(ShardWorld& world, absl::Duration duration) {
  for (absl::Duration run; run < duration; run += kTick) world.Pass(kTick);
}

// The server is stopped for that time: nothing happens.
void Stop(ShardWorld& world, absl::Duration duration) { world.clock().Advance(duration); }

// ---- The server did not run ----

TEST(StoppedServerTest, EvictsNobodyForTheStepThatItStoppedIn) {
  ShardWorld world(Evicting(Sync(2)));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  Stop(world, 4 * kWait);
  world.shard().Tick();
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
}

TEST(StoppedServerTest, GoesOnToCountTheWaitWhenItRuns) {
  ShardWorld world(Evicting(Sync(2)));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  RunFor(world, kWait - 4 * kTick);
  Stop(world, absl::Hours(1));
  RunFor(world, kTick);
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  RunFor(world, 2 * kTick);
  EXPECT_THAT(world.Heard("b"), ElementsAre("evicted 0"));
}

// Calls that waited in the sockets come before the first tick.
TEST(StoppedServerTest, ProceedsWithoutNobodyAtTheFirstCallAfterTheStop) {
  ShardWorld world(Proceeding(Sync(3)));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  Stop(world, 4 * kWait);
  EXPECT_FALSE(world.GoOn("a").answered());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Accepted(0));
  world.shard().Tick();
  EXPECT_EQ(world.step(), 0u);
  EXPECT_THAT(world.Push("c", 0, {6, 6, 6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
}

TEST(StoppedServerTest, ExcusesAndEvictsNobodyInSsp) {
  for (const bool evicts : {true, false}) {
    ShardWorld world(evicts ? Evicting(Ssp(0, 2)) : Proceeding(Ssp(0, 2)));
    world.Start({"a", "b"});
    ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Applied(1));
    const TestPull held_up = world.GoOn("a");
    Stop(world, 4 * kWait);
    world.shard().Tick();
    EXPECT_FALSE(held_up.answered());
    EXPECT_THAT(world.Heard("b"), IsEmpty());
    EXPECT_THAT(world.Push("b", 1, {4, 4, 4}), Applied(2));
    EXPECT_TRUE(held_up.answered());
  }
}

TEST(StoppedServerTest, DoesNotEndTheWaitForWorkersThatStillStart) {
  ShardOptions options = Evicting(Sync(2));
  options.start_timeout = kWait;
  ShardWorld world(options);
  world.Start({"a"});
  Stop(world, 4 * kWait);
  world.shard().Tick();
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  RunFor(world, kWait);
  EXPECT_EQ(world.step(), 1u);
}

// ---- The server has no room ----

// Five workers: a has contributed, c and d fill the room and send nothing, and e waits for it.
class FullServer {
 public:
  explicit FullServer(const ShardOptions& options) : world(WithLittleRoom(options)) {
    world.Start({"a", "b", "c", "d", "e"});
    EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
    of_c = world.Begin("c", 0);
    of_d = world.Begin("d", 0);
    of_e = world.BeginAs(world.NextHeader("e", 0));
    EXPECT_FALSE(of_e.told());
  }

  // The streams of c and d end.
  void EndStreams() {
    world.shard().AbandonPush(std::move(of_c), Abandoned::kAborted);
    world.shard().AbandonPush(std::move(of_d), Abandoned::kAborted);
  }

  ShardWorld world;
  std::unique_ptr<PendingPush> of_c;
  std::unique_ptr<PendingPush> of_d;
  TestStart of_e;
};

TEST(FullServerTest, EvictsThoseWhoFillTheRoomAndNotThoseWhoWaitForIt) {
  FullServer full(Evicting(Sync(5)));
  RunFor(full.world, kWait - kTick);
  EXPECT_FALSE(full.of_e.told());
  RunFor(full.world, kTick);
  for (const char* const worker : {"b", "c", "d"}) {
    EXPECT_THAT(full.world.Heard(worker), ElementsAre("evicted 0")) << worker;
  }
  EXPECT_THAT(full.world.Heard("e"), IsEmpty());
  ASSERT_TRUE(full.of_e.let_in());
  EXPECT_THAT(full.world.Finish(full.of_e.Take(), {4, 4, 4}), Applied(1));
  full.EndStreams();
  EXPECT_EQ(full.world.Counters(), "4 received: 2 accepted, 2 aborted");
}

TEST(FullServerTest, CountsTheTimeOfAWorkerThatItHasLetIn) {
  FullServer full(Evicting(Sync(5)));
  RunFor(full.world, kWait);
  full.EndStreams();
  ASSERT_TRUE(full.of_e.let_in());
  auto push = full.of_e.Take();
  RunFor(full.world, kWait - kTick);
  EXPECT_THAT(full.world.Heard("e"), IsEmpty());
  RunFor(full.world, kTick);
  EXPECT_THAT(full.world.Heard("e"), ElementsAre("evicted 0"));
  full.world.shard().AbandonPush(std::move(push), Abandoned::kAborted);
}

// Otherwise those who fill the room could hold the step up for ever.
TEST(FullServerTest, ProceedsWhenItsTimeIsOverWhoeverWaitsForRoom) {
  FullServer full(Proceeding(Sync(5)));
  RunFor(full.world, kWait - kTick);
  EXPECT_EQ(full.world.step(), 0u);
  RunFor(full.world, kTick);
  EXPECT_EQ(full.world.step(), 1u);
  full.EndStreams();
  EXPECT_THAT(full.of_e.answer(), Stale(1, 1));
}

// A worker cannot hide behind a second push of its own.
TEST(FullServerTest, EvictsAWorkerWhosePushWaitsForItsOwnFirstPush) {
  ShardWorld world(Evicting(Sync(2)));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  auto first = world.Begin("b", 0);
  const TestStart second = world.BeginAs(world.NextHeader("b", 0));
  EXPECT_FALSE(second.told());
  RunFor(world, kWait);
  EXPECT_THAT(world.Heard("b"), ElementsAre("evicted 0"));
  world.shard().AbandonPush(std::move(first), Abandoned::kAborted);
}

// ---- The server works ----

TEST(WorkingServerTest, EvictsNobodyWhileItAppliesACompleteStep) {
  ShardWorld world(Evicting(Backup(1, 2)));
  world.shard().SetStepListener([&world](Step) { RunFor(world, 3 * kWait); });
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Applied(1));
  EXPECT_THAT(world.Heard("b"), IsEmpty());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Stale(1, 1));
}

TEST(WorkingServerTest, EvictsNobodyInSspWhileItApplies) {
  ShardWorld world(Evicting(Ssp(0, 2)));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Applied(1));
  const TestPull held_up = world.GoOn("a");
  world.shard().SetStepListener([&world](Step) { RunFor(world, 3 * kWait); });
  EXPECT_THAT(world.Push("b", 1, {4, 4, 4}), Applied(2));
  EXPECT_TRUE(held_up.answered());
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Heard("b"), IsEmpty());
}

// ---- A slow link ----

TEST(SlowLinkTest, ArrivingBytesRenewTheLease) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  world.Silence("a");
  auto push = world.Begin("a", 0);
  for (uint64_t i = 0; i < 3; ++i) {
    world.Pass(kLease - kTick);
    ASSERT_THAT(world.Heard("a"), IsEmpty()) << i;
    ASSERT_THAT(push->Add(ChunkOf(i, Values{1})), IsOk());
    world.Pass(kTick);
  }
  push->Seal();
  absl::StatusOr<PushOutcome> answer = absl::UnknownError("not answered");
  world.shard().FinishPush(std::move(push), [&](auto outcome) { answer = std::move(outcome); });
  EXPECT_THAT(answer, Applied(1));
}

TEST(SlowLinkTest, BytesThatDoNotComeAnyMoreRenewNothing) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  world.Silence("a");
  auto push = world.Begin("a", 0);
  ASSERT_THAT(push->Add(ChunkOf(0, Values{1})), IsOk());
  world.Pass(kTick);
  world.Pass(kLease - kTick);
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  world.Pass(kTick);
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
  world.shard().AbandonPush(std::move(push), Abandoned::kAborted);
}

TEST(SlowLinkTest, TheEndOfAPushRenewsTheLease) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  world.Silence("a");
  auto push = world.Begin("a", 0);
  world.Pass(kLease - kTick);
  EXPECT_THAT(world.Finish(std::move(push), {2, 2, 2}), Accepted(0));
  world.Pass(kLease - kTick);
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  world.Pass(kTick);
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
}

}  // namespace
}  // namespace sluice
