// Sessions: what they are told in fields that scripts do not show, and what they report. Stories of
// sessions are in tests/scripts.

#include <cmath>
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

constexpr absl::Duration kLease = absl::Seconds(10);

TEST(JoinTest, WelcomesWorkers) {
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
  EXPECT_EQ(welcome->lease, kLease);
  EXPECT_EQ(world.Join("b")->index, 1u);
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

TEST(JoinTest, TellsThePushesOfTheProcessBefore) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  world.Lose("b");
  EXPECT_EQ(world.Restart("b")->pushes_before, 1u);
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Applied(1));
  world.Lose("a");
  EXPECT_EQ(world.Restart("a")->pushes_before, 1u);
}

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

TEST(HeartbeatTest, TellsTheServersStep) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")), IsOkAndHolds(Step(0)));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.shard().Heartbeat(world.session("a")), IsOkAndHolds(Step(1)));
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
  world.shard().store().AbandonPush(std::move(push), Abandoned::kAborted);
}

TEST(LostWorkerTest, DiesMidPushAndLeavesNoTraceInTheStep) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  auto dying = world.Begin("b", 0);
  ASSERT_THAT(dying->Add(ChunkOf(0, {9, 9})), IsOk());
  world.shard().store().AbandonPush(std::move(dying), Abandoned::kAborted);
  world.Lose("b");
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  world.Pass(kLease);
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
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

TEST(LeaveTest, TellsTheStepAndKeepsTheResultsThatWereReported) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.Leave("a", {{"test accuracy", 0.5}}), IsOkAndHolds(0u));
  ASSERT_THAT(world.Leave("b", {{"epochs", 3}}), IsOk());
  EXPECT_EQ(world.shard().results(), (Results{{"epochs", 3}, {"test accuracy", 0.5}}));
}

TEST(ModelTest, IsThereOnceAWorkerHasJoined) {
  ShardWorld world(Sync(2), LayoutOf({{"w", 3}, {"b", 2}}));
  EXPECT_EQ(world.shard().layout(), nullptr);
  EXPECT_EQ(world.shard().store().stripe().latest(), nullptr);
  world.Start({"a"});
  EXPECT_EQ(world.shard().layout()->size(), 5u);
}

}  // namespace
}  // namespace sluice
