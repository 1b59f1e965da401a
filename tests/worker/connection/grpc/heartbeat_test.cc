// Heartbeats: the server's call, and the worker's sender.

#include "worker/connection/grpc/heartbeat.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// ---- The call ----

// Workers "a" and "b" in sync, of whom "b" says nothing by itself; the lease is 10 s.
class HeartbeatCallTest : public ::testing::Test {
 protected:
  HeartbeatCallTest() : world_(Sync(2)) {
    for (const char* name : {"a", "b"}) EXPECT_THAT(world_.Join(name), IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
    world_.Silence("b");
  }

  ServerWorld world_;
};

TEST_F(HeartbeatCallTest, TellsTheServersStep) {
  EXPECT_THAT(world_.Heartbeat("a"), IsOkAndHolds(0u));
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world_.Heartbeat("b"), IsOkAndHolds(1u));
}

TEST_F(HeartbeatCallTest, KeepsASessionAliveThatSaysNothingElse) {
  for (int i = 0; i < 5; ++i) {
    world_.Pass(absl::Seconds(9));
    EXPECT_THAT(world_.Heartbeat("b"), IsOk());
  }
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Applied(1));
}

TEST_F(HeartbeatCallTest, IsNeededByNoWorkerThatCalls) {
  for (uint64_t step = 0; step < 5; ++step) {
    world_.Pass(absl::Seconds(9));
    EXPECT_THAT(world_.Push("b", step, {1, 1, 1}), Accepted(step));
    EXPECT_THAT(world_.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
}

TEST_F(HeartbeatCallTest, EvictsASilentSessionAndTheOthersGoOn) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  world_.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_EQ(world_.shard().Describe().step, Step(0));
  world_.Pass(absl::Nanoseconds(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 9, 9}));
  EXPECT_EQ(world_.NextEvent("b"), "evicted");
  EXPECT_THAT(world_.Heartbeat("b"), IsError(Reason::kUnknownSession, HasSubstr("join anew")));
}

TEST_F(HeartbeatCallTest, DoesNotBringAWorkerBackWhoseConnectionBroke) {
  EXPECT_TRUE(world_.Break("b"));
  world_.Pass(absl::Seconds(9));
  EXPECT_THAT(world_.Heartbeat("b"), IsOk());
  world_.Pass(absl::Seconds(1));
  EXPECT_THAT(world_.Heartbeat("b"), IsError(Reason::kUnknownSession, HasSubstr("join anew")));
}

// ---- The worker's heartbeats ----

// The server's clock stands still. Heartbeats come in real time, a third of the lease apart: the
// test waits for one, then lets the server's time pass.
TEST(HeartbeatTest, KeepsAConnectionsSessionAliveForManyLeases) {
  ShardOptions options = Sync(1);
  options.lease = absl::Milliseconds(60);
  ServerWorld world(options);
  const auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  const auto heard = [&world] {
    const ShardStatus state = world.shard().Describe();
    return world.shard().Sessions()[0].last_seen == state.now;
  };
  for (int i = 0; i < 10; ++i) {
    world.Pass(absl::Milliseconds(50));
    EXPECT_TRUE(world.Await(heard));
  }
  EXPECT_EQ(world.shard().Sessions()[0].presence, Presence::kPresent);
}

TEST(HeartbeatTest, ComesThreeTimesInALeaseUnlessThatIsVeryShortOrLong) {
  EXPECT_EQ(HeartbeatInterval(absl::Seconds(9)), absl::Seconds(3));
  EXPECT_EQ(HeartbeatInterval(absl::Minutes(5)), absl::Seconds(5));
  EXPECT_EQ(HeartbeatInterval(absl::Milliseconds(60)), absl::Milliseconds(20));
  EXPECT_EQ(HeartbeatInterval(absl::Milliseconds(1)), absl::Milliseconds(20));
}

TEST(HeartbeatTest, PausesForTheRestOfTheInterval) {
  const absl::Duration interval = HeartbeatInterval(absl::Seconds(9));
  EXPECT_EQ(PauseAfterHeartbeat(absl::Milliseconds(10), interval), absl::Milliseconds(2990));
  EXPECT_EQ(PauseAfterHeartbeat(interval, interval), absl::ZeroDuration());
  EXPECT_EQ(PauseAfterHeartbeat(interval + absl::Milliseconds(1), interval), absl::ZeroDuration());
}

TEST(HeartbeatTest, PresentsTheToken) {
  ShardOptions options = Sync(1);
  options.lease = absl::Milliseconds(60);
  ServerWorld world(options, ParametersOnly(3), "secret");
  const auto connection = ConnectTo(world.address().ToString(), "secret");
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  world.Pass(absl::Milliseconds(50));
  EXPECT_TRUE(world.Await(
      [&world] { return world.shard().Sessions()[0].last_seen == world.shard().Describe().now; }));
}

TEST(HeartbeatTest, EndsWithItsConnectionThoughTheServerIsGone) {
  ShardOptions options = Sync(1);
  options.lease = absl::Milliseconds(60);
  ServerWorld world(options);
  auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  world.Stop();
  connection = nullptr;  // returns
}

TEST(HeartbeatTest, BeatsForTheNewSessionAfterASecondJoin) {
  ShardOptions options = Sync(1);
  options.lease = absl::Milliseconds(60);
  ServerWorld world(options);
  const auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  const auto again = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(world.shard().Sessions()[0].session, again->session);
  for (int i = 0; i < 3; ++i) {
    world.Pass(absl::Milliseconds(50));
    EXPECT_TRUE(world.Await([&world] {
      return world.shard().Sessions()[0].last_seen == world.shard().Describe().now;
    }));
  }
}

}  // namespace
}  // namespace sluice
