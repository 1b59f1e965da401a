// A worker's side of the protocol, over both connections to a server: in the same process, and
// gRPC.

#include "worker/client/parameter_client.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/encoding/encoding.h"
#include "common/encoding/encoding_plan.h"
#include "common/tensor/layout.h"
#include "common/tensor/table_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/listening/counted_calls.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/transport.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

// A worker whose model has three parameters, and the parameters it holds.
struct TestWorker {
  TestWorker(std::string worker_name, std::unique_ptr<ServerConnection> connection,
             const Values& own = {0, 0, 0})
      : name(std::move(worker_name)), client(std::move(connection)), parameters(own) {}

  absl::Status Join(SessionRole role = SessionRole::kWorker) {
    JoinRequest request = WorkerRequest(name);
    request.role = role;
    if (!tables.empty()) request.layout = *Layout::Create(request.layout.ranges(), tables);
    return client.Join(request, absl::MakeSpan(parameters));
  }
  absl::StatusOr<RoundReport> PushPull(const Values& gradient) {
    return client.PushPull(Share(gradient), 32, 0.5f, absl::MakeSpan(parameters));
  }

  const std::string name;
  ParameterClient client;
  Values parameters;
  std::vector<TableSpec> tables;  // of its model
};

::testing::Matcher<const absl::StatusOr<RoundReport>&> Round(uint64_t step, Disposition disposition,
                                                             uint64_t staleness = 0) {
  return IsOkAndHolds(AllOf(Field("step", &RoundReport::step, Step(step)),
                            Field("disposition", &RoundReport::disposition, disposition),
                            Field("staleness", &RoundReport::staleness, staleness)));
}

SessionRecord RecordOf(ServerWorld& world, const std::string& name) {
  for (const SessionRecord& record : world.shard().Sessions()) {
    if (record.worker == name) return record;
  }
  ADD_FAILURE() << "no worker " << name;
  return SessionRecord();
}

class ParameterClientTest : public ::testing::TestWithParam<Transport> {
 protected:
  std::unique_ptr<ServerConnection> Connect(ServerWorld& world) { return GetParam()(world); }
};

INSTANTIATE_TEST_SUITE_P(, ParameterClientTest,
                         ::testing::Values(&InProcess, &OverGrpc, &InTwoCalls), TransportName);

TEST_P(ParameterClientTest, GivesAllWorkersTheParametersOfTheFirst) {
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world), {1, 2, 3});
  TestWorker b("b", Connect(world), {7, 8, 9});
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  EXPECT_EQ(a.parameters, Values({1, 2, 3}));
  EXPECT_EQ(b.parameters, Values({1, 2, 3}));
  EXPECT_EQ(b.client.step(), Step(0));
  EXPECT_EQ(b.client.welcome().index, 1u);
  EXPECT_EQ(b.client.welcome().workers, 2u);
}

// Otherwise the bits of a training would depend on which worker came first.
TEST(EncodedPullsTest, GiveTheFirstWorkerTheValuesOfTheOthers) {
  ServerWorld world(Sync(2), ParametersOnly(kFewest));
  const auto joined = [&world](const std::string& name, float own) {
    auto connection = OverGrpc(world);
    connection->UsePullEncoding(ParseEncoding("bfloat16").value());
    ParameterClient client(std::move(connection));
    Values parameters(kFewest, own);
    EXPECT_THAT(client.Join(WorkerRequest(name, kFewest), absl::MakeSpan(parameters)), IsOk());
    return parameters;
  };
  const Values first = joined("a", 1.001F);
  EXPECT_EQ(first, Values(kFewest, 1));
  EXPECT_EQ(joined("b", 7), first);
}

TEST_P(ParameterClientTest, WaitsForTheNextStepInSync) {
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  std::thread first([&] { EXPECT_THAT(a.PushPull({1, 2, 3}), Round(1, Disposition::kAccepted)); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().current.accumulated == 1; }));
  EXPECT_THAT(b.PushPull({3, 2, 1}), Round(1, Disposition::kApplied));
  first.join();
  EXPECT_EQ(a.parameters, Values({8, 8, 8}));
  EXPECT_EQ(b.parameters, Values({8, 8, 8}));
}

TEST_P(ParameterClientTest, StaysInStepForManyRounds) {
  constexpr int kRounds = 20;
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world));
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  const auto train = [](TestWorker& worker, const Values& gradient) {
    for (int i = 0; i < kRounds; ++i) ASSERT_THAT(worker.PushPull(gradient), IsOk());
  };
  std::thread other([&] { train(b, {3, 3, 3}); });
  train(a, {1, 1, 1});
  other.join();
  EXPECT_EQ(a.parameters, Values(3, -2 * kRounds));
  EXPECT_EQ(b.parameters, a.parameters);
  EXPECT_EQ(world.Counters(), "40 received: 40 accepted");
}

TEST_P(ParameterClientTest, GoesOnWithTheLatestStepInAsync) {
  ServerWorld world(Async(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
  EXPECT_THAT(b.PushPull({2, 2, 2}), Round(2, Disposition::kApplied, 1));
  EXPECT_EQ(b.parameters, Values({7, 7, 7}));
}

TEST_P(ParameterClientTest, DoesNotWaitForAStepInAsync) {
  ServerWorld world(Async(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(0, Disposition::kAccepted));
  EXPECT_EQ(a.parameters, Values({10, 10, 10}));
  EXPECT_THAT(a.PushPull({3, 3, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({8, 8, 8}));
}

TEST_P(ParameterClientTest, GoesOnAfterAStaleGradient) {
  ServerWorld world(Bounded(1, 0));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_THAT(b.PushPull({5, 5, 5}), Round(1, Disposition::kStaleDropped, 1));
  EXPECT_EQ(b.parameters, Values({9, 9, 9}));
  EXPECT_THAT(b.PushPull({2, 2, 2}), Round(2, Disposition::kApplied));
  EXPECT_EQ(b.parameters, Values({7, 7, 7}));
}

TEST_P(ParameterClientTest, NumbersItsPushesFromOneAndTellsTheBatch) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  for (uint64_t round = 1; round <= 3; ++round) {
    ASSERT_THAT(a.PushPull({1, 1, 1}), Round(round, Disposition::kApplied));
    EXPECT_EQ(RecordOf(world, "a").last_sequence, Sequence(round));
  }
  EXPECT_EQ(RecordOf(world, "a").loss, 0.5f);
}

TEST_P(ParameterClientTest, GoesOnWithItsSequenceInANewSession) {
  ServerWorld world(Sync(1));
  {
    TestWorker a("a", Connect(world), {10, 10, 10});
    ASSERT_THAT(a.Join(), IsOk());
    ASSERT_THAT(a.PushPull({1, 1, 1}), IsOk());
    ASSERT_THAT(a.PushPull({1, 1, 1}), IsOk());
  }
  TestWorker again("a", Connect(world));
  ASSERT_THAT(again.Join(), IsOk());
  EXPECT_EQ(again.parameters, Values({8, 8, 8}));
  EXPECT_THAT(again.PushPull({1, 1, 1}), Round(3, Disposition::kApplied));
  EXPECT_EQ(RecordOf(world, "a").last_sequence, Sequence(3));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST_P(ParameterClientTest, WaitsForTheFirstStepThatItTakesPartIn) {
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  TestWorker late("late", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  std::thread first([&] { EXPECT_THAT(a.PushPull({1, 1, 1}), IsOk()); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().current.accumulated == 1; }));
  std::thread joiner([&] { EXPECT_THAT(late.Join(), IsOk()); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 2; }));
  EXPECT_THAT(b.PushPull({3, 3, 3}), Round(1, Disposition::kApplied));
  first.join();
  joiner.join();
  EXPECT_EQ(late.client.step(), Step(1));
  EXPECT_EQ(late.parameters, Values({8, 8, 8}));
}

TEST_P(ParameterClientTest, TellsWhyItMayNotJoin) {
  ServerWorld world(Sync(1), ParametersOnly(4));
  ASSERT_THAT(world.Join("a"), IsOk());
  TestWorker b("b", Connect(world));
  EXPECT_THAT(b.Join(), IsError(Reason::kLayoutMismatch, HasSubstr("[3]")));
}

TEST_P(ParameterClientTest, TellsWhyAGradientIsRefused) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {1, 2, 3});
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_THAT(a.PushPull({0, std::numeric_limits<float>::infinity(), 0}),
              IsError(Reason::kNotFinite, HasSubstr("w[1] is inf")));
  EXPECT_EQ(a.parameters, Values({1, 2, 3}));
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
}

TEST_P(ParameterClientTest, TakesTheFinalParametersOnceEveryWorkerHasLeft) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  TestWorker observer("o", Connect(world));
  ASSERT_THAT(observer.Join(SessionRole::kObserver), IsOk());
  EXPECT_EQ(observer.parameters, Values({10, 10, 10}));
  std::thread waiting(
      [&] { EXPECT_THAT(observer.client.AwaitEnd(absl::MakeSpan(observer.parameters)), IsOk()); });
  ASSERT_THAT(a.PushPull({1, 2, 3}), IsOk());
  ASSERT_THAT(a.client.Leave({}), IsOk());
  waiting.join();
  EXPECT_EQ(observer.parameters, Values({9, 8, 7}));
  EXPECT_THAT(observer.client.Leave({{{"accuracy", 0.75}}}), IsOk());
  EXPECT_EQ(world.shard().results(), Results({{"accuracy", 0.75}}));
}

TEST_P(ParameterClientTest, TellsThatTheServerWentDownBeforeTheEnd) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  TestWorker observer("o", Connect(world));
  ASSERT_THAT(observer.Join(SessionRole::kObserver), IsOk());
  world.shard().Drain();
  EXPECT_THAT(observer.client.AwaitEnd(absl::MakeSpan(observer.parameters)),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("went down")));
}

TEST_P(ParameterClientTest, TellsThoseWhoWaitForTheEndThatTrainingDiverged) {
  ShardOptions options = Async(1);
  options.guards.skip_not_finite = true;
  options.guards.on_divergence = DivergenceAction::kStop;
  ServerWorld world(options);
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {0, 0, 0}), IsOk());
  TestWorker observer("o", Connect(world));
  ASSERT_THAT(observer.Join(SessionRole::kObserver), IsOk());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 15; ++i) ASSERT_THAT(world.Push("a", 0, {kInfinity, 0, 0}), Skipped(0));
  EXPECT_THAT(observer.client.AwaitEnd(absl::MakeSpan(observer.parameters)),
              IsError(Reason::kDiverged, HasSubstr("of the latest gradients had NaN or infinity")));
}

// The worker was busy for so long that the server is gone when it pushes.
TEST(ParameterClientEndTest, AWorkerWhoseServerIsGoneKnowsThatTrainingDiverged) {
  ShardOptions options = Async(1);
  options.guards.skip_not_finite = true;
  options.guards.on_divergence = DivergenceAction::kStop;
  ShardWorld world(options);
  world.Start({"a", "b"});
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& link = *connection;
  TestWorker worker("w", std::move(connection));
  ASSERT_THAT(worker.Join(), IsOk());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 15; ++i) {
    ASSERT_THAT(world.Push(i % 2 == 0 ? "a" : "b", 0, {kInfinity, 0, 0}), Skipped(0));
  }
  ASSERT_TRUE(world.shard().Describe().diverged);
  link.BreakPushes(1);
  link.LoseServer();
  EXPECT_THAT(worker.PushPull({1, 1, 1}),
              IsError(Reason::kDiverged, HasSubstr("because training diverges")));
  EXPECT_EQ(link.reconnects(), 0);
}

// ---- Joining again ----

TEST_P(ParameterClientTest, JoinsAgainWhenItsSessionHasEndedAndItsPushCountsOnce) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  const SessionId before = a.client.welcome().session;
  world.Pass(absl::Seconds(10));  // nobody speaks for it here: its lease ends
  EXPECT_THAT(a.PushPull({2, 2, 2}), Round(2, Disposition::kApplied));
  EXPECT_NE(a.client.welcome().session, before);
  EXPECT_TRUE(a.client.welcome().resumed);
  EXPECT_EQ(a.parameters, Values({7, 7, 7}));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 aborted");
}

TEST_P(ParameterClientTest, JoinsAgainWhenItsWaitIsCutOff) {
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  std::thread first([&] { EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kAccepted)); });
  EXPECT_TRUE(world.Await([&] {
    const ShardStatus state = world.shard().Describe();
    return state.current.accumulated == 1 && state.waiting_pulls == 1;
  }));
  // Ends both sessions, and the step that only "a" has contributed to is made without "b".
  world.Pass(absl::Seconds(10));
  first.join();
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
  EXPECT_EQ(world.shard().Describe().step, Step(1));
}

TEST_P(ParameterClientTest, StaysOutWhenItsOperatorRemovedIt) {
  ServerWorld world(Sync(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(world.Evict("a"), IsOk());
  EXPECT_THAT(a.PushPull({1, 1, 1}), IsError(Reason::kEvicted, HasSubstr("a was evicted")));
  EXPECT_EQ(world.Counters(), "1 received: 1 aborted");
}

TEST_P(ParameterClientTest, GoesOnObservingWhenItsSessionHasEnded) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  TestWorker observer("o", Connect(world));
  ASSERT_THAT(observer.Join(SessionRole::kObserver), IsOk());
  const SessionId before = RecordOf(world, "o").session;
  std::thread waiting(
      [&] { EXPECT_THAT(observer.client.AwaitEnd(absl::MakeSpan(observer.parameters)), IsOk()); });
  world.Pass(absl::Seconds(10));
  EXPECT_TRUE(world.Await([&] {
    const SessionRecord record = RecordOf(world, "o");
    return record.session != before && record.presence == Presence::kPresent;
  }));
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), Applied(1));
  ASSERT_THAT(world.Leave("a"), IsOk());
  waiting.join();
  EXPECT_EQ(observer.parameters, Values({9, 8, 7}));
}

TEST_P(ParameterClientTest, SendsParametersInPlaceOfAGradient) {
  ServerWorld world(Async(2));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  // The worker has changed its parameters, so the server's replace them, although the step is the
  // same.
  a.parameters = {1, 2, 3};
  EXPECT_THAT(
      a.client.PushPull({a.parameters, nullptr}, 1, absl::nullopt, absl::MakeSpan(a.parameters)),
      Round(0, Disposition::kAccepted));
  EXPECT_EQ(a.parameters, Values({10, 10, 10}));
}

// ---- A gradient that leaves before it is complete ----

// Where a push and a pull are one call, nothing leaves early.
class EarlyGradientTest : public ParameterClientTest {};

INSTANTIATE_TEST_SUITE_P(, EarlyGradientTest, ::testing::Values(&InProcess, &InTwoCalls),
                         TransportName);

// The last two of the three elements.
void SendTwoEarly(TestWorker& worker, const Values& gradient) {
  worker.client.SendEarly(1, Share(gradient).Part(1, 2));
}

bool ArrivesEarly(ServerWorld& world) {
  return world.Await([&] { return world.shard().Describe().counters.in_progress == 1; });
}

bool NothingArrives(ServerWorld& world) {
  return world.Await([&] { return world.shard().Describe().counters.in_progress == 0; });
}

// In sync, of the only worker.
bool TwoElementsArrive(ServerWorld& world) {
  return world.Await([&] {
    const StepState current = world.shard().Describe().current;
    return current.awaited.size() == 1 && current.awaited[0].bytes_arrived == 2 * sizeof(float);
  });
}

TEST_P(EarlyGradientTest, SendsAGradientThatIsNotCompleteYet) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  for (uint64_t round = 1; round <= 3; ++round) {
    SendTwoEarly(a, {1, 2, 3});
    EXPECT_TRUE(ArrivesEarly(world));
    EXPECT_THAT(a.PushPull({1, 2, 3}), Round(round, Disposition::kApplied));
  }
  EXPECT_EQ(a.parameters, Values({7, 4, 1}));
  EXPECT_EQ(RecordOf(world, "a").loss, 0.5f);
  EXPECT_EQ(RecordOf(world, "a").last_sequence, Sequence(3));
  EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
}

TEST_P(EarlyGradientTest, PushesAllOfAGradientAgainWhoseSessionEndedWhenAPartHadArrived) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  SendTwoEarly(a, {1, 2, 3});
  EXPECT_TRUE(TwoElementsArrive(world));
  world.Pass(absl::ZeroDuration());
  world.Pass(absl::Seconds(10));
  // Over gRPC the server ends the call by itself. Before that, a worker would take part from the
  // next step on.
  EXPECT_TRUE(GetParam() == &InProcess || NothingArrives(world));
  EXPECT_THAT(a.PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 8, 7}));
  EXPECT_EQ(RecordOf(world, "a").last_sequence, Sequence(1));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
}

TEST_P(EarlyGradientTest, GivesUpAGradientOfWhichAPartHasArrived) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  SendTwoEarly(a, {9, 9, 9});
  EXPECT_TRUE(ArrivesEarly(world));
  a.client.GiveUpEarly();
  EXPECT_THAT(a.PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 8, 7}));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
}

TEST_P(EarlyGradientTest, GoesOnAfterAGradientThatBecameStaleBeforeItWasComplete) {
  ServerWorld world(Bounded(1, 0));
  TestWorker a("a", Connect(world), {10, 10, 10});
  TestWorker b("b", Connect(world));
  ASSERT_THAT(a.Join(), IsOk());
  ASSERT_THAT(b.Join(), IsOk());
  SendTwoEarly(a, {5, 5, 5});
  EXPECT_TRUE(ArrivesEarly(world));
  EXPECT_THAT(b.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_THAT(a.PushPull({5, 5, 5}), Round(1, Disposition::kStaleDropped, 1));
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 stale");
}

TEST_P(EarlyGradientTest, TellsWhyAPartThatWasSentEarlyIsRefused) {
  ServerWorld world(Sync(1));
  TestWorker a("a", Connect(world), {1, 2, 3});
  ASSERT_THAT(a.Join(), IsOk());
  const Values gradient = {0, std::numeric_limits<float>::infinity(), 0};
  SendTwoEarly(a, gradient);
  EXPECT_THAT(a.PushPull(gradient), IsError(Reason::kNotFinite, HasSubstr("w[1] is inf")));
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
}

// ---- A push and a pull in one call ----

// The calls of twenty rounds, and perhaps some heartbeats: what gRPC has counted at the server.
int64_t CallsOfTwentyRounds(Transport connect) {
  ServerWorld world(Sync(1));
  TestWorker a("a", connect(world), {10, 10, 10});
  EXPECT_THAT(a.Join(), IsOk());
  const auto calls = [] {
    int64_t begun = 0;
    for (const int64_t connection : ConnectionNumbersOf(LatestGrpcServer(), 0)) {
      begun += CallsOf(connection).value_or(CallCounts()).begun;
    }
    return begun;
  };
  const int64_t before = calls();
  for (uint64_t round = 1; round <= 20; ++round) {
    EXPECT_THAT(a.PushPull({0.5, 0, 0}), Round(round, Disposition::kApplied));
  }
  EXPECT_EQ(a.parameters, Values({0, 10, 10}));
  return calls() - before;
}

TEST(PushPullTest, ARoundOfASmallVectorIsOneCall) {
  EXPECT_THAT(CallsOfTwentyRounds(&OverGrpc), AllOf(Ge(20), Lt(30)));
  EXPECT_GE(CallsOfTwentyRounds(&InTwoCalls), 40);
}

// A call lasts for a millisecond here, and the other worker comes later. So the pull is repeated
// until then, and the push only once.
TEST(PushPullTest, GoesOnInTwoCallsIfTheOtherWorkersAreLate) {
  ServerWorld world(Sync(2));
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  options.pull_timeout = absl::Milliseconds(1);
  options.own_connection = true;
  TestWorker b("b", OverGrpc(world), {10, 10, 10});
  ASSERT_THAT(b.Join(), IsOk());
  const int64_t server = LatestGrpcServer();
  const int64_t earlier = ConnectionNumbersOf(server, 0).back();
  auto connection = ConnectOverGrpc(options);
  ASSERT_THAT(connection, IsOk());
  TestWorker a("a", *std::move(connection));
  ASSERT_THAT(a.Join(), IsOk());
  const auto connections = ConnectionNumbersOf(server, earlier);
  ASSERT_EQ(connections.size(), 1u);
  std::thread early([&a] {
    EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kAccepted));
    EXPECT_EQ(a.parameters, Values({8, 8, 8}));
  });
  EXPECT_TRUE(world.Await([&] {
    return CallsOf(connections[0]).value_or(CallCounts()).begun >= 20 &&
           world.shard().Describe().counters.received > 0;
  }));
  EXPECT_LE(world.shard().Describe().counters.received, 2u);
  EXPECT_THAT(b.PushPull({3, 3, 3}), Round(1, Disposition::kApplied));
  early.join();
  EXPECT_EQ(b.parameters, Values({8, 8, 8}));
  EXPECT_EQ(RecordOf(world, "a").last_sequence, Sequence(1));
}

TEST(PushPullTest, WritesTheParametersOverWhatWasPushed) {
  ServerWorld world(Sync(1));
  TestWorker a("a", OverGrpc(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  a.parameters = {1, 2, 3};
  const SharedFloats own = {a.parameters, nullptr};
  EXPECT_THAT(a.client.PushPull(own, 1, absl::nullopt, absl::MakeSpan(a.parameters)),
              Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 8, 7}));
}

TEST(PushPullTest, NothingOfASmallVectorLeavesEarly) {
  ServerWorld world(Sync(1));
  TestWorker a("a", OverGrpc(world), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  SendTwoEarly(a, {50, 50, 50});
  EXPECT_THAT(a.PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 8, 7}));
}

// ---- What only the twin can show ----

// A worker "a" of a server in sync, whose connection a test breaks.
class ParameterClientTwinTest : public ::testing::Test {
 protected:
  ParameterClientTwinTest() : world_(Sync(1)) {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    twin_ = connection.get();
    a_ = std::make_unique<TestWorker>("a", std::move(connection), Values{10, 10, 10});
    EXPECT_THAT(a_->Join(), IsOk());
  }

  ServerWorld world_;
  ShardConnection* twin_ = nullptr;
  std::unique_ptr<TestWorker> a_;
};

TEST_F(ParameterClientTwinTest, CountsAPushOnceWhoseAnswerWasLost) {
  twin_->LoseAnswers(1);
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({9, 9, 9}));
  EXPECT_EQ(RecordOf(world_, "a").last_sequence, Sequence(1));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 duplicate");
}

TEST_F(ParameterClientTwinTest, RepeatsAPushUntilTheServerCanWriteItsJournal) {
  int pauses = 0;
  twin_->OnAwaitRetry([&] {
    if (++pauses == 3) world_.shard().durability().SetJournalError(absl::OkStatus());
  });
  world_.shard().durability().SetJournalError(
      MakeError(Reason::kJournalStopped, "the disk is full"));
  EXPECT_THAT(a_->PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(pauses, 3);
  EXPECT_EQ(world_.shard().Describe().step, Step(1));
}

TEST_F(ParameterClientTwinTest, CountsAPushOnceHoweverOftenItsAnswerIsLost) {
  twin_->LoseAnswers(5);
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(2, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({8, 8, 8}));
  EXPECT_EQ(world_.Counters(), "7 received: 2 accepted, 5 duplicate");
  EXPECT_EQ(twin_->joins(), 6);
}

TEST_F(ParameterClientTwinTest, SendsAPushAgainThatDidNotArrive) {
  twin_->BreakPushes(2);
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({9, 9, 9}));
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
  EXPECT_EQ(twin_->reconnects(), 2);
}

TEST_F(ParameterClientTwinTest, SendsAPushAgainThatWasCutWhenAPartHadArrived) {
  twin_->CutPushes(1);
  SendTwoEarly(*a_, {1, 2, 3});
  EXPECT_THAT(a_->PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({9, 8, 7}));
  EXPECT_EQ(RecordOf(world_, "a").loss, 0.5f);
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 aborted");
}

TEST_F(ParameterClientTwinTest, CountsAPushOnceThatLeftEarlyAndWhoseAnswerWasLost) {
  twin_->LoseAnswers(1);
  SendTwoEarly(*a_, {1, 2, 3});
  EXPECT_THAT(a_->PushPull({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({9, 8, 7}));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 duplicate");
}

TEST_F(ParameterClientTwinTest, KeepsJoiningUntilItIsLetIn) {
  twin_->BreakPushes(1);
  twin_->BreakJoins(3);
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(twin_->reconnects(), 4);
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
}

TEST_F(ParameterClientTwinTest, SaysThatItHasJoinedAgain) {
  twin_->LoseAnswers(1);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a has joined again, at step 1"));
}

TEST_F(ParameterClientTwinTest, GivesUpAServerThatLetsNobodyStay) {
  twin_->BreakPushes(1000);
  EXPECT_THAT(a_->PushPull({1, 1, 1}),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("the connection broke")));
  EXPECT_LT(twin_->joins(), 100);
}

TEST_F(ParameterClientTwinTest, GivesUpAServerThatDoesNotComeBack) {
  twin_->LoseServer();
  EXPECT_THAT(a_->PushPull({1, 1, 1}),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("did not come back")));
  EXPECT_EQ(a_->parameters, Values({10, 10, 10}));
}

// Another server of the same job, which knows no worker of the first.
class ParameterClientMovedTest : public ParameterClientTwinTest {
 protected:
  static ShardOptions Another(const std::string& job_id) {
    ShardOptions options = Sync(1);
    options.job_id = job_id;
    options.session_base = SessionId(1000);
    return options;
  }

  // "z" has joined it, and left when it had made a step: the parameters are 5.
  static void Train(ServerWorld& world, const std::string& job_id) {
    v1::JoinRequest request = world.RequestOf("z");
    request.set_job_id(job_id);
    ASSERT_THAT(world.JoinAs(request), IsOk());
    ASSERT_THAT(world.Initialize("z", {6, 6, 6}), IsOk());
    ASSERT_THAT(world.Push("z", 0, {1, 1, 1}), Applied(1));
    ASSERT_THAT(world.Leave("z"), IsOk());
  }
};

TEST_F(ParameterClientMovedTest, GivesItsPushUpWhereItIsNotKnownAndGoesOnFromThere) {
  ServerWorld other(Another("job"));
  Train(other, "job");
  ASSERT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  twin_->MoveTo(other.shard());
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kStaleDropped));
  EXPECT_FALSE(a_->client.welcome().resumed);
  EXPECT_EQ(a_->parameters, Values({5, 5, 5}));
  EXPECT_EQ(other.Counters(), "2 received: 1 accepted, 1 aborted");
  EXPECT_THAT(a_->PushPull({2, 2, 2}), Round(2, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({3, 3, 3}));
  a_ = nullptr;  // before the other server
}

TEST_F(ParameterClientMovedTest, DoesNotTakePartInAnotherJobAtTheAddress) {
  ServerWorld other(Another("another"));
  Train(other, "another");
  twin_->MoveTo(other.shard());
  EXPECT_THAT(a_->PushPull({1, 1, 1}),
              IsError(Reason::kWrongJob, HasSubstr("runs job \"another\", not \"job\"")));
  EXPECT_EQ(a_->parameters, Values({10, 10, 10}));
  a_ = nullptr;  // before the other server
}

// A server that ended before it had stored any parameters.
TEST_F(ParameterClientMovedTest, GivesItsParametersToAServerThatHasNone) {
  ASSERT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  ServerWorld other(Another("job"));
  twin_->MoveTo(other.shard());
  EXPECT_THAT(a_->PushPull({1, 1, 1}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(a_->parameters, Values({9, 9, 9}));
  EXPECT_THAT(a_->PushPull({2, 2, 2}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a_->parameters, Values({7, 7, 7}));
  a_ = nullptr;  // before the other server
}

// A worker with a table, whose server is replaced by one that has neither parameters nor rows.
class ParameterClientRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    twin_ = connection.get();
    a_ = std::make_unique<TestWorker>("a", std::move(connection), Values({10, 10, 10}));
    TableSpec rows;
    rows.name = "rows";
    rows.width = 2;
    a_->tables = {rows};
    ASSERT_THAT(a_->Join(), IsOk());
  }

  ServerWorld world_{Sync(1)};
  ServerWorld back_{Sync(1)};
  ShardConnection* twin_ = nullptr;  // a_ owns it
  std::unique_ptr<TestWorker> a_;
};

TEST_F(ParameterClientRowsTest, GivesItsParametersToAServerThatCameBackBeforeTheFirstStep) {
  twin_->MoveTo(back_.shard());
  EXPECT_THAT(a_->PushPull({1, 1, 1}), IsOk());
  EXPECT_EQ(back_.shard().Describe().phase, Phase::kTraining);
}

TEST_F(ParameterClientRowsTest, TellsThatTheRowsOfItsStepsAreLost) {
  ASSERT_THAT(a_->PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  twin_->MoveTo(back_.shard());
  EXPECT_THAT(
      a_->PushPull({1, 1, 1}),
      HasCode(absl::StatusCode::kDataLoss, HasSubstr("has lost the rows of the model's tables")));
}

TEST(ParameterClientJoinTest, JoinsAgainWhenTheServerGoesDownMeanwhile) {
  ServerWorld world(Sync(1));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& twin = *connection;
  TestWorker a("a", std::move(connection), {10, 10, 10});
  twin.BreakJoins(3);
  int pauses = 0;
  twin.OnAwaitRetry([&pauses] { ++pauses; });
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_EQ(twin.reconnects(), 3);
  EXPECT_EQ(pauses, 2);  // the first time it joins again at once
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
}

TEST(ParameterClientJoinTest, OffersItsParametersAgainToTheServerThatComesBack) {
  ServerWorld world(Sync(1));
  ServerWorld back(Sync(1));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& twin = *connection;
  TestWorker a("a", std::move(connection), {10, 10, 10});
  twin.BeforeInitialize([&] { twin.MoveTo(back.shard()); });
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_EQ(back.shard().Describe().phase, Phase::kTraining);
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
}

TEST(ParameterClientJoinTest, GivesUpAServerThatLetsNobodyIn) {
  ServerWorld world(Sync(1));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& twin = *connection;
  TestWorker a("a", std::move(connection));
  twin.BreakJoins(1000);
  EXPECT_THAT(a.Join(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("the connection broke")));
  EXPECT_LT(twin.joins(), 100);
}

TEST(ParameterClientPullTest, PullsAgainUntilTheStepComes) {
  ServerWorld world(Sync(1));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& twin = *connection;
  TestWorker a("a", std::move(connection), {10, 10, 10});
  ASSERT_THAT(a.Join(), IsOk());
  const int joining = twin.pulls();
  twin.DelayPulls(3);
  EXPECT_THAT(a.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(twin.pulls(), joining + 4);
  EXPECT_EQ(a.parameters, Values({9, 9, 9}));
  EXPECT_EQ(world.Counters(), "1 received: 1 accepted");
}

// The worker "a", whose next 100 pushes come to a full server.
class ParameterClientPatienceTest : public ::testing::Test {
 protected:
  ParameterClientPatienceTest() {
    EXPECT_THAT(a_.Join(), IsOk());
    twin_->DelayPushes(100);
  }

  ServerWorld world_{Sync(1)};
  ShardConnection* const twin_ = new ShardConnection(world_.shard());
  TestWorker a_{"a", std::unique_ptr<ServerConnection>(twin_)};
};

TEST_F(ParameterClientPatienceTest, APushWaitsForAsLongAsTheServerLives) {
  EXPECT_THAT(a_.PushPull({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(twin_->joins(), 1);
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
}

TEST_F(ParameterClientPatienceTest, APushThatWaitedGivesUpAServerThatDied) {
  twin_->BreakPushes(1000);
  EXPECT_THAT(a_.PushPull({1, 1, 1}),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("the connection broke")));
  EXPECT_EQ(twin_->joins(), 1 + 20);
}

TEST(ParameterClientInitializeTest, OffersAgainWhatWaitedTooLong) {
  ServerWorld world(Sync(1));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ShardConnection& twin = *connection;
  TestWorker a("a", std::move(connection), {1, 2, 3});
  twin.DelayOffers(3);
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_EQ(twin.joins(), 1);
  EXPECT_EQ(ValuesOf(world.shard().store().stripe().latest()->values.span()), Values({1, 2, 3}));
}

TEST(ParameterClientInitializeTest, TakesTheParametersOfWhoWasFaster) {
  ServerWorld world(Sync(2));
  auto connection = std::make_unique<ShardConnection>(world.shard());
  ASSERT_THAT(world.Join("faster"), IsOk());
  connection->BeforeInitialize([&] { EXPECT_THAT(world.Initialize("faster", {4, 5, 6}), IsOk()); });
  TestWorker a("a", std::move(connection), {1, 2, 3});
  ASSERT_THAT(a.Join(), IsOk());
  EXPECT_FALSE(a.client.welcome().initialized);
  EXPECT_EQ(a.parameters, Values({4, 5, 6}));
}

}  // namespace
}  // namespace sluice
