// What counts against a worker that others wait for, and against its lease: the time in which the
// worker itself could have acted. Time in which this server worked does not count, and bytes that
// arrive renew a lease. tests/scripts/waits.txt has the other waits.

#include <utility>

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

// The server runs for that time: it ticks.
void RunFor(ShardWorld& world, absl::Duration duration) {
  for (absl::Duration run; run < duration; run += kTick) world.Pass(kTick);
}

// ---- The server works ----

TEST(WorkingServerTest, EvictsNobodyWhileItAppliesACompleteStep) {
  ShardWorld world(Evicting(Backup(1, 2)));
  world.shard().durability().SetStepListener([&world](Step) { RunFor(world, 3 * kWait); });
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
  world.shard().durability().SetStepListener([&world](Step) { RunFor(world, 3 * kWait); });
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
  world.shard().store().FinishPush(std::move(push),
                                   [&](auto outcome) { answer = std::move(outcome); });
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
  world.shard().store().AbandonPush(std::move(push), Abandoned::kAborted);
}

}  // namespace
}  // namespace sluice
