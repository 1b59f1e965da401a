// What the messages say of a shard. inspector_test has what a caller sees.

#include "server/observe/server_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/active_pulls.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

v1::ServerState StateOf(ShardWorld& world) { return ToProto(world.shard().Describe()); }

v1::Worker WorkerOf(ShardWorld& world, const std::string& name) {
  for (const SessionRecord& record : world.shard().Sessions()) {
    if (record.worker == name) return ToProto(record, world.shard().Describe(), {});
  }
  ADD_FAILURE() << "no worker " << name;
  return {};
}

TEST(ServerStateTest, ASilentServerHasWhatItsReadersShowOfIt) {
  ShardWorld world(Sync(3));
  const v1::ServerState state = StateOf(world);
  EXPECT_EQ(state.phase(), v1::WAITING_FOR_WORKERS);
  EXPECT_EQ(state.expected_workers(), 3);
  EXPECT_FALSE(state.has_since_initialized());
  EXPECT_FALSE(state.has_mean_step_time());
  EXPECT_THAT(state.received_by_encoding(), IsEmpty());
  EXPECT_FALSE(state.diverged());
  EXPECT_FALSE(state.journal_stopped());
}

TEST(ServerStateTest, TellsTimesFromTheParametersAndFromTheLatestStep) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  world.clock().Advance(absl::Seconds(4));
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  world.clock().Advance(absl::Seconds(2));
  const v1::ServerState state = StateOf(world);
  EXPECT_EQ(state.since_initialized().seconds(), 6);
  EXPECT_EQ(state.since_last_step().seconds(), 2);
  EXPECT_EQ(state.mean_step_time().seconds(), 4);
  EXPECT_EQ(state.running().seconds(), 6);
}

TEST(ServerStateTest, CountsWorkersByWhetherTheyAreThere) {
  ShardWorld world(Async(1));
  world.Start({"a", "b", "c"});
  world.Lose("b");
  const v1::WorkerCounts counts = StateOf(world).worker_counts();
  EXPECT_EQ(counts.connected(), 2);
  EXPECT_EQ(counts.lost(), 1);
  EXPECT_EQ(counts.evicted(), 0);
}

TEST(ServerStateTest, AddsUpTheStalenessOfAllGradients) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(world.Push("a", step, {1, 2, 3}), IsOk());
  }
  ASSERT_THAT(world.Push("b", 0, {1, 2, 3}), IsOk());
  const v1::Staleness staleness = StateOf(world).staleness();
  EXPECT_EQ(staleness.gradients(), 4);
  EXPECT_EQ(staleness.sum(), 3);
}

// a pushes every 2 s, and b does so four times; nobody waits for it.
TEST(ServerStateTest, NamesWorkersThatHaveStalledWhereNobodyWaitsForThem) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  const auto push = [&world](const std::string& worker) {
    ASSERT_THAT(world.Push(worker, world.step(), {1, 2, 3}), IsOk());
  };
  for (int round = 0; round < 14; ++round) {
    push("a");
    if (round < 4) push("b");
    EXPECT_THAT(StateOf(world).current().stalled(), IsEmpty()) << round;
    world.clock().Advance(absl::Seconds(2));
  }
  push("a");
  const v1::ServerState state = StateOf(world);
  ASSERT_THAT(state.current().stalled(), SizeIs(1));
  EXPECT_EQ(state.current().stalled(0).worker(), "b");
  EXPECT_EQ(state.current().stalled(0).since_last_push().seconds(), 22);
  EXPECT_EQ(state.current().stalled(0).usual().seconds(), 2);
  EXPECT_TRUE(WorkerOf(world, "b").stalled());
  EXPECT_FALSE(WorkerOf(world, "a").stalled());
  EXPECT_EQ(state.verdict().kind(), v1::Verdict::SLOW);
  push("b");
  EXPECT_EQ(StateOf(world).verdict().kind(), v1::Verdict::FINE);
}

TEST(ServerStateTest, HasTheSamplesAndTheLossOfTheStepsThatWereMade) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  EXPECT_FALSE(StateOf(world).has_loss());
  for (uint64_t step = 0; step < 25; ++step) {
    PushHeader header = world.NextHeader("a", step);
    header.samples = 32;
    header.loss = static_cast<float>(step);
    ASSERT_THAT(world.PushAs(header, {1, 2, 3}), IsOk());
  }
  EXPECT_EQ(StateOf(world).samples(), 25 * 32);
  EXPECT_EQ(StateOf(world).loss(), 14.5);  // the mean of 5 to 24
}

TEST(ServerStateTest, NamesTheEncodingsThatWereUsed) {
  ShardStatus status;
  status.traffic.received_by_transform[3] = {400, 100};
  status.traffic.sent_by_transform[8] = {40, 10};
  const v1::ServerState state = ToProto(status);
  ASSERT_THAT(state.received_by_encoding(), SizeIs(1));
  EXPECT_EQ(state.received_by_encoding(0).encoding(), "int8");
  EXPECT_EQ(state.received_by_encoding(0).tensor_bytes(), 400);
  EXPECT_EQ(state.received_by_encoding(0).wire_bytes(), 100);
  ASSERT_THAT(state.sent_by_encoding(), SizeIs(1));
  EXPECT_EQ(state.sent_by_encoding(0).encoding(), "custom");
}

TEST(ServerStateTest, HasTasksOfEachThreadAndNoCheckpointsWithoutADirectory) {
  ShardWorld world(Sync(1));
  const v1::ServerState state = ToProto(world.shard().Describe(), world.shard(), nullptr);
  EXPECT_EQ(state.tasks().count("step"), 1);
  EXPECT_EQ(state.checkpoint_every(), 0);
  EXPECT_FALSE(state.has_last_checkpoint());
}

TEST(WorkerMessageTest, AWorkerThatHasNotPushedIsBehindByAllSteps) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  ASSERT_THAT(world.Push("a", 1, {1, 2, 3}), IsOk());
  ASSERT_THAT(world.Join("late"), IsOk());
  EXPECT_EQ(WorkerOf(world, "a").lag(), 1);
  EXPECT_EQ(WorkerOf(world, "late").lag(), 2);
  EXPECT_FALSE(WorkerOf(world, "late").has_since_last_push());
}

TEST(WorkerMessageTest, WhatAnEarlierProcessOfTheNameContributedCounts) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  ASSERT_THAT(world.Restart("a"), IsOk());
  EXPECT_TRUE(WorkerOf(world, "a").contributed());
  EXPECT_TRUE(WorkerOf(world, "a").joined());
  EXPECT_FALSE(WorkerOf(world, "b").contributed());
}

TEST(WorkerMessageTest, AWorkerPullsFromAnyServerThatIsThere) {
  ShardWorld world(Async(1));
  const ActivePulls::Stream stream(world.shard().store().active_pulls(), SessionId(1));
  ShardStatus status;
  status.each_server.resize(3);
  status.each_server[1].connected = true;
  status.each_server[1].figures.pulling = {SessionId(2)};
  status.each_server[2].figures.pulling = {SessionId(3)};  // the last it said
  const std::set<SessionId> pulling = PullingFrom(world.shard(), status);
  EXPECT_THAT(pulling, UnorderedElementsAre(SessionId(1), SessionId(2)));
  SessionRecord record;
  record.session = SessionId(2);
  EXPECT_TRUE(ToProto(record, status, pulling).pulling());
  record.session = SessionId(3);
  EXPECT_FALSE(ToProto(record, status, pulling).pulling());
}

TEST(ServersMessageTest, TellsWhichServerIsAwayAndWhichIsAwaited) {
  ShardStatus status;
  status.step = Step(7);
  status.each_server.resize(3);
  status.each_server[0].connected = true;
  status.awaited_holder = AwaitedHolder{0, status.now - absl::Seconds(2)};
  status.each_server[1].unchanged = absl::Seconds(9);
  const std::vector<v1::Server> servers = ServersToProto(status);
  ASSERT_THAT(servers, SizeIs(3));
  EXPECT_EQ(servers[0].awaited(), "to carry out an order of step 8");
  EXPECT_EQ(servers[0].awaited_since().seconds(), 2);
  EXPECT_EQ(servers[1].index(), 1);
  EXPECT_EQ(servers[1].awaited(), "to connect again to the first server");
  EXPECT_EQ(servers[1].awaited_since().seconds(), 9);
  EXPECT_EQ(servers[2].awaited(), "to come");
  EXPECT_FALSE(servers[2].has_awaited_since());
}

}  // namespace
}  // namespace sluice
