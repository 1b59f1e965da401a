// Sessions: heartbeats, leases, and the records of workers that have gone.

#include <cmath>
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

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

// ---- Those who say nothing ----

TEST(SilentWorkerTest, IsEvictedWhenItsLeaseEndsAndTheStepGoesOn) {
  ShardWorld world(Sync(2));
  world.Start({"a", "silent"});
  world.Silence("silent");
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Pass(kLease - kInstant);
  EXPECT_EQ(world.step(), 0u);
  world.Pass(kInstant);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_THAT(world.Heard("silent"), ElementsAre("evicted 0"));
  EXPECT_THAT(world.Heard("a"), IsEmpty());
}

TEST(SilentWorkerTest, MayJoinAgain) {
  ShardWorld world(Sync(1));
  world.Start({"silent"});
  world.Silence("silent");
  ASSERT_THAT(world.Push("silent", 0, {1, 1, 1}), Applied(1));
  world.Pass(kLease);
  const absl::StatusOr<Welcome> welcome = world.Join("silent");
  EXPECT_TRUE(welcome->resumed);
  EXPECT_EQ(welcome->step, Step(1));
  EXPECT_EQ(welcome->last_sequence, Sequence(1));
}

TEST(SilentWorkerTest, IsNoneThatPushesOrPulls) {
  ShardWorld world(Async(1));
  world.Start({"pushes", "pulls", "silent"});
  for (const char* name : {"pushes", "pulls", "silent"}) world.Silence(name);
  world.Pass(kLease - kInstant);
  world.PullAs(world.session("pulls"), 1);
  auto push = world.Begin("pushes", 0);
  world.Pass(kLease - kInstant);
  EXPECT_THAT(world.Finish(std::move(push), {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Heard("pushes"), IsEmpty());
  EXPECT_THAT(world.Heard("pulls"), IsEmpty());
  EXPECT_THAT(world.Heard("silent"), ElementsAre("evicted 0"));
}

TEST(SilentWorkerTest, IsNoneThatSaysItIsThere) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  for (int i = 0; i < 100; ++i) world.Pass(kLease - kInstant);
  EXPECT_EQ(world.shard().Describe().workers, 2u);
}

TEST(SilentWorkerTest, MayBeAnObserver) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  ASSERT_THAT(world.Observe("o"), IsOk());
  world.Silence("o");
  world.Pass(kLease);
  EXPECT_EQ(world.shard().Describe().observers, 0u);
  EXPECT_THAT(world.Heard("o"), ElementsAre("evicted 0"));
}

// The status shows for how long the worker has been silent.
TEST(SilentWorkerTest, IsSeenInWhoIsWaitedFor) {
  ShardWorld world(Sync(2));
  world.Start({"a", "silent"});
  world.Silence("silent");
  auto push = world.Begin("silent", 0);
  ASSERT_THAT(push->Add(ChunkOf(0, {1, 2})), IsOk());
  world.Pass(absl::ZeroDuration());
  world.Pass(absl::Seconds(4));
  const StepState current = world.shard().Describe().current;
  ASSERT_EQ(current.awaited.size(), 2u);
  EXPECT_EQ(current.awaited[0].since_last_seen, absl::ZeroDuration());
  EXPECT_EQ(current.awaited[1].worker, "silent");
  EXPECT_EQ(current.awaited[1].since_last_seen, absl::Seconds(4));
  EXPECT_EQ(current.awaited[1].bytes_arrived, 8u);
  world.shard().AbandonPush(std::move(push), Abandoned::kAborted);
}

TEST(HeartbeatTest, TellsTheServersStep) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")), IsOkAndHolds(Step(0)));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")), IsOkAndHolds(Step(1)));
}

TEST(HeartbeatTest, IsOfASessionThatIsAlive) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_THAT(world.shard().Heartbeat(SessionId(99)),
              IsError(Reason::kUnknownSession, HasSubstr("session 99")));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")),
              IsError(Reason::kUnknownSession, HasSubstr("session 1")));
}

TEST(MeasurementTest, TheLatestOfWorkersAndObserversIsShown) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(world.shard().Describe().measured.count, 0u);
  const auto welcome = world.Observe("o");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(
      world.shard().Heartbeat(welcome->session, StepMeasurement{Step(0), {{"accuracy", 0.5}}}),
      IsOkAndHolds(Step(1)));
  EXPECT_THAT(world.shard().Heartbeat(world.session("a"), StepMeasurement{Step(1), {{"loss", 2}}}),
              IsOkAndHolds(Step(1)));
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")), IsOkAndHolds(Step(1)));
  const MeasurementStatus measured = world.shard().Describe().measured;
  EXPECT_EQ(measured.count, 2u);
  EXPECT_EQ(measured.latest.step, Step(1));
  EXPECT_EQ(measured.latest.results, (Results{{"loss", 2}}));
  EXPECT_TRUE(world.shard().results().empty()) << "the closing table has none of them";
}

TEST(MeasurementTest, IsOfAStepThatWasReachedAndHasNamedFiniteNumbers) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  const auto report = [&](const StepMeasurement& measurement) {
    return world.shard().Heartbeat(world.session("a"), measurement);
  };
  EXPECT_THAT(report({Step(1), {{"accuracy", 0.5}}}),
              IsError(Reason::kBadArgument,
                      HasSubstr("measurement.step is 1, but the server is at step 0")));
  EXPECT_THAT(
      report({Step(0), {{"", 0.5}}}),
      IsError(Reason::kBadArgument, HasSubstr("field measurement.results has an empty name")));
  EXPECT_THAT(report({Step(0), {{"accuracy", std::nan("")}}}),
              IsError(Reason::kBadArgument, HasSubstr("a number that is not finite")));
  EXPECT_EQ(world.shard().Describe().measured.count, 0u);
}

TEST(WelcomeTest, TellsTheLease) {
  ShardWorld world(Async(1));
  EXPECT_EQ(world.Join("a")->lease, kLease);
}

// ---- Those who return ----

TEST(ResumedTest, IsAProcessThatTheServerKnows) {
  ShardWorld world(Async(1));
  EXPECT_FALSE(world.Join("a")->resumed);
  EXPECT_TRUE(world.Join("a")->resumed);
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_TRUE(world.Join("a")->resumed);
  EXPECT_FALSE(world.Restart("a")->resumed);
}

// The server does not know any more whether its last push counted.
TEST(ResumedTest, IsNoneThatWasForgottenToMakeRoom) {
  ShardOptions options = Async(1);
  options.max_sessions = 2;
  ShardWorld world(options);
  world.Start({"a", "b"});
  world.Silence("a");
  world.Pass(kLease);
  ASSERT_THAT(world.Join("c"), IsOk());
  ASSERT_THAT(world.Leave("c"), IsOk());
  EXPECT_FALSE(world.Join("a")->resumed);
}

TEST(ReplacedSessionTest, IsToldThatItIsEvicted) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
}

// ---- Lives of the server ----

TEST(IncarnationTest, NoSessionOfAnEarlierLifeIsTakenForOneOfThis) {
  ShardOptions options = Async(1);
  options.incarnation = Incarnation(3);
  options.session_base = SessionId(1000);
  ShardWorld world(options);
  const absl::StatusOr<Welcome> welcome = world.Join("a");
  EXPECT_EQ(welcome->incarnation, Incarnation(3));
  EXPECT_EQ(welcome->session, SessionId(1001));
  EXPECT_THAT(world.shard().Heartbeat(SessionId(1)),
              IsError(Reason::kUnknownSession, HasSubstr("session 1 ")));
}

// ---- Draining ----

TEST(DrainTwiceTest, IsAnnouncedOnce) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  world.shard().Drain();
  world.shard().Drain();
  EXPECT_THAT(world.Heard("a"), ElementsAre("draining 0"));
  EXPECT_THAT(world.Heard("owner"), ElementsAre("draining 0"));
}

TEST(SessionNameTest, IsEscapedInErrors) {
  ShardWorld world(Sync(2));
  const std::string name = "a\r\n\x1b[2J";
  world.Start({name, "b"});
  ASSERT_THAT(world.Push(name, 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world.Push(name, 0, {1, 1, 1}),
              IsError(Reason::kAlreadyContributed, HasSubstr("a\\r\\n\\033[2J has contributed")));
  ASSERT_THAT(world.shard().Evict(name), IsOk());
  EXPECT_THAT(world.Join(name),
              IsError(Reason::kEvicted, HasSubstr("a\\r\\n\\033[2J was evicted")));
}

}  // namespace
}  // namespace sluice
