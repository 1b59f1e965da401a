// Pushes and pulls that go through several connections: the rules of a push hold as if it were one.

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/tensor/tensor_chunk.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/trained_server_test.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Of a push by hand.
class GrpcPushLaneTest : public TrainedServerTest {
 protected:
  // The header of a push with lanes.
  v1::PushHeader Header(uint64_t lanes = 1) {
    v1::PushHeader header = world_.NextHeader("a", world_.shard().Describe().step.value());
    header.set_call_number(lanes);
    return header;
  }

  v1::PushGradientsRequest Lane(uint64_t call = 1) { return LaneOf(world_.session("a"), call); }

  // A lane that ends after those messages.
  absl::Status SendLane(const std::vector<v1::PushGradientsRequest>& messages) {
    const auto lane = world_.OpenPushLane();
    for (const v1::PushGradientsRequest& message : messages) lane->Write(message);
    lane->End();
    return lane->Answer().status();
  }

  static absl::StatusOr<PushOutcome> AnswerOf(PushStream& push) {
    push.End();
    const auto answer = push.Answer();
    if (!answer.ok()) return answer.status();
    return FromProto(*answer);
  }
};

TEST_F(GrpcPushLaneTest, WhatLanesBringCountsAsIfThePushHadBroughtIt) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  push->Write(GradientOf(2, Values(1, 1)));
  EXPECT_THAT(SendLane({Lane(), GradientOf(5, Values(2, 1)), GradientOf(0, Values(2, 1))}), IsOk());
  EXPECT_THAT(SendLane({Lane(), GradientOf(3, Values(2, 1))}), IsOk());
  EXPECT_THAT(AnswerOf(*push), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values(7, 9));
}

TEST_F(GrpcPushLaneTest, ALaneMayComeBeforeItsPush) {
  absl::Status lane_end;
  std::thread lane([&] { lane_end = SendLane({Lane(), GradientOf(0, Values(7, 1))}); });
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  lane.join();
  EXPECT_THAT(lane_end, IsOk());
  EXPECT_THAT(AnswerOf(*push), Applied(1));
}

TEST_F(GrpcPushLaneTest, WhatIsWrongInALaneIsWrongWithThePush) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  EXPECT_THAT(SendLane({Lane(), GradientOf(0, {1, 1, kNan})}),
              IsError(Reason::kNotFinite, HasSubstr("conv.weight[2] is nan")));
  push->Write(GradientOf(3, Values(4, 1)));
  EXPECT_THAT(AnswerOf(*push), IsError(Reason::kNotFinite, HasSubstr("conv.weight[2] is nan")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushLaneTest, ChunksOfTwoLanesMayNotOverlap) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  EXPECT_THAT(SendLane({Lane(), GradientOf(0, Values(4, 1))}), IsOk());
  EXPECT_THAT(SendLane({Lane(), GradientOf(3, Values(4, 1))}),
              IsError(Reason::kBadChunk, HasSubstr("overlaps")));
  EXPECT_THAT(AnswerOf(*push), IsError(Reason::kBadChunk, HasSubstr("overlaps")));
}

TEST_F(GrpcPushLaneTest, APushThatEndsBeforeItsLanesLacksWhatTheyWouldHaveBrought) {
  const auto lane = world_.OpenPushLane();
  lane->Write(Lane());
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  push->Write(GradientOf(0, Values(4, 1)));
  EXPECT_THAT(AnswerOf(*push),
              IsError(Reason::kBadChunk, HasSubstr("elements 4 to 6 are missing")));
  lane->Write(GradientOf(4, Values(3, 1)));
  lane->End();
  EXPECT_THAT(lane->Answer(), IsOk());
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushLaneTest, ALaneThatBreaksLeavesThePushIncomplete) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  const auto lane = world_.OpenPushLane();
  lane->Write(Lane());
  lane->Cancel();
  EXPECT_THAT(lane->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(AnswerOf(*push),
              IsError(Reason::kBadChunk, HasSubstr("elements 0 to 6 are missing")));
}

TEST_F(GrpcPushLaneTest, ALaneOfAPushThatIsAnsweredAtItsHeaderEndsWithIt) {
  CompleteStep();
  v1::PushHeader header = world_.NextHeader("a", 0);
  header.set_call_number(1);
  const auto waiting = world_.OpenPushLane();
  waiting->Write(Lane(1));
  EXPECT_THAT(world_.AnswerToHeader(header), Stale(1, 1));
  EXPECT_THAT(waiting->Answer(), IsOk());
  EXPECT_THAT(SendLane({Lane(1), GradientOf(0, Values(7, 1))}), IsOk());
}

TEST_F(GrpcPushLaneTest, ALaneOfARepeatedPushBelongsToTheRepetition) {
  v1::PushHeader header = Header(1);
  const auto broken = world_.OpenPush();
  broken->Write(HeaderOf(header));
  EXPECT_THAT(SendLane({Lane(1), GradientOf(0, Values(4, 1))}), IsOk());
  broken->Cancel();
  broken->Answer().status().IgnoreError();
  header.set_call_number(2);
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(header));
  EXPECT_THAT(SendLane({Lane(2), GradientOf(0, Values(4, 1))}), IsOk());
  push->Write(GradientOf(4, Values(3, 1)));
  EXPECT_THAT(AnswerOf(*push), Applied(1));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 aborted");
}

TEST_F(GrpcPushLaneTest, RefusesALaneWithoutAName) {
  EXPECT_THAT(SendLane({}), IsError(Reason::kMissingHeader, HasSubstr("the lane names no push")));
  EXPECT_THAT(SendLane({GradientOf(0, Values(7, 1))}),
              IsError(Reason::kMissingHeader, HasSubstr("the lane names no push")));
  EXPECT_THAT(SendLane({Lane(0)}),
              IsError(Reason::kBadArgument, HasSubstr("field call_number is 0")));
}

TEST_F(GrpcPushLaneTest, RefusesALaneOfASessionThatIsNotThere) {
  EXPECT_THAT(SendLane({LaneOf(12345, 1)}),
              IsError(Reason::kUnknownSession, HasSubstr("session 12345 has ended")));
}

TEST_F(GrpcPushLaneTest, ASecondNameInALaneIsWrong) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  EXPECT_THAT(SendLane({Lane(), Lane()}), IsError(Reason::kBadArgument, HasSubstr("no chunk")));
  EXPECT_THAT(AnswerOf(*push), IsError(Reason::kBadArgument, HasSubstr("no chunk")));
}

TEST_F(GrpcPushLaneTest, TheEndOfASessionEndsItsLanes) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  const auto waiting = world_.OpenPushLane();
  waiting->Write(LaneOf(world_.session("b"), 1));
  ASSERT_THAT(world_.Leave("b"), IsOk());
  EXPECT_TRUE(world_.Break("b"));
  EXPECT_THAT(waiting->Answer().status(),
              ::testing::AnyOf(IsOk(), IsError(Reason::kUnknownSession, _)));
}

// Of a pull by hand: a model of five chunks.
constexpr uint64_t kChunks = 5;
constexpr uint64_t kElements = kChunks * kChunkElements;

class GrpcPullLaneTest : public ::testing::Test {
 protected:
  GrpcPullLaneTest() : world_(Sync(1), ParametersOnly(kElements)) {
    EXPECT_THAT(world_.Join("a"), IsOk());
    const auto parameters = world_.OpenInitialize();
    parameters->Write(HeaderOf(world_.session("a")));
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
      parameters->Write(
          ParametersOf(chunk * kChunkElements, Values(kChunkElements, static_cast<float>(chunk))));
    }
    parameters->End();
    EXPECT_THAT(parameters->Answer(), IsOk());
  }

  v1::PullParamsRequest Pull(uint64_t lanes) const {
    v1::PullParamsRequest request;
    request.set_session(world_.session("a"));
    request.set_call_number(lanes);
    return request;
  }

  v1::Lane Lane(uint64_t call) const {
    v1::Lane lane;
    lane.set_session(world_.session("a"));
    lane.set_call_number(call);
    return lane;
  }

  // Reads what a call brings, and how it ends.
  absl::Status ReadAll(grpc::ClientReader<v1::PullParamsResponse>& call) {
    v1::PullParamsResponse message;
    while (call.Read(&message)) Note(message);
    return FromGrpcStatus(call.Finish());
  }

  // A chunk's number is what its elements are.
  void Note(const v1::PullParamsResponse& message) {
    if (!message.has_chunk()) return;
    EXPECT_EQ(message.chunk().offset() % kChunkElements, 0u);
    const uint64_t chunk = message.chunk().offset() / kChunkElements;
    float first = -1;
    message.chunk().payload().copy(reinterpret_cast<char*>(&first), sizeof(first));
    EXPECT_EQ(first, static_cast<float>(chunk));
    ++came_[chunk];
  }

  std::map<uint64_t, int> EachOnce() const {
    std::map<uint64_t, int> each;
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) each[chunk] = 1;
    return each;
  }

  ServerWorld world_;
  std::map<uint64_t, int> came_;  // how often each chunk did
};

// gRPC takes some of the first call's chunks before anybody reads them, but no more than a window.
TEST_F(GrpcPullLaneTest, EachChunkComesThroughOneOfTheCalls) {
  const auto contexts = {world_.Context(), world_.Context(), world_.Context()};
  auto context = contexts.begin();
  const auto pull = world_.stub().PullParams((context++)->get(), Pull(1));
  v1::PullParamsResponse header;
  ASSERT_TRUE(pull->Read(&header));
  EXPECT_TRUE(header.has_header());
  const auto first = world_.stub().PullLane((context++)->get(), Lane(1));
  const auto second = world_.stub().PullLane((context++)->get(), Lane(1));
  EXPECT_THAT(ReadAll(*first), IsOk());
  EXPECT_THAT(ReadAll(*second), IsOk());
  EXPECT_THAT(ReadAll(*pull), IsOk());
  EXPECT_EQ(came_, EachOnce());
}

TEST_F(GrpcPullLaneTest, ALaneMayComeBeforeItsPull) {
  const auto lane_context = world_.Context();
  const auto lane = world_.stub().PullLane(lane_context.get(), Lane(1));
  const auto context = world_.Context();
  const auto pull = world_.stub().PullParams(context.get(), Pull(1));
  EXPECT_THAT(ReadAll(*lane), IsOk());
  EXPECT_THAT(ReadAll(*pull), IsOk());
  EXPECT_EQ(came_, EachOnce());
}

TEST_F(GrpcPullLaneTest, WithoutALaneAllComesThroughThePull) {
  const auto context = world_.Context();
  EXPECT_THAT(ReadAll(*world_.stub().PullParams(context.get(), Pull(1))), IsOk());
  EXPECT_EQ(came_, EachOnce());
}

TEST_F(GrpcPullLaneTest, ALaneOfAPullThatHasEndedBringsNothing) {
  const auto context = world_.Context();
  EXPECT_THAT(ReadAll(*world_.stub().PullParams(context.get(), Pull(2))), IsOk());
  came_.clear();
  for (const uint64_t call : {1, 2}) {
    const auto lane_context = world_.Context();
    EXPECT_THAT(ReadAll(*world_.stub().PullLane(lane_context.get(), Lane(call))), IsOk());
  }
  EXPECT_TRUE(came_.empty());
}

TEST_F(GrpcPullLaneTest, ALaneOfAPullThatBringsNothingEndsWithIt) {
  const auto lane_context = world_.Context();
  const auto lane = world_.stub().PullLane(lane_context.get(), Lane(1));
  v1::PullParamsRequest request = Pull(1);
  request.set_have_step(0);
  const auto context = world_.Context();
  EXPECT_THAT(ReadAll(*world_.stub().PullParams(context.get(), request)), IsOk());
  EXPECT_THAT(ReadAll(*lane), IsOk());
  EXPECT_TRUE(came_.empty());
}

TEST_F(GrpcPullLaneTest, RefusesALaneOfNoCallAndOfNoSession) {
  const auto context = world_.Context();
  EXPECT_THAT(ReadAll(*world_.stub().PullLane(context.get(), Lane(0))),
              IsError(Reason::kBadArgument, HasSubstr("field call_number is 0")));
  v1::Lane lane = Lane(1);
  lane.set_session(12345);
  const auto other = world_.Context();
  EXPECT_THAT(ReadAll(*world_.stub().PullLane(other.get(), lane)),
              IsError(Reason::kUnknownSession, HasSubstr("12345")));
}

// Workers with several connections, through the whole of the client.
constexpr int kConnections = 3;
constexpr uint64_t kLarge = kConnections * 4 * kChunkElements + 77;

// Of this process, connected to a server's port.
std::set<int> SocketsTo(uint16_t port) {
  std::set<int> sockets;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in6 peer = {};  // the port's place is that of IPv4's
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin6_family != AF_INET && peer.sin6_family != AF_INET6) continue;
    if (ntohs(peer.sin6_port) == port) sockets.insert(fd);
  }
  return sockets;
}

uint64_t BytesSent(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  EXPECT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_bytes_acked;
}

Values Ramp(float scale) {
  Values values(kLarge);
  for (uint64_t i = 0; i < kLarge; ++i) values[i] = scale * static_cast<float>(i % 1000);
  return values;
}

class LaneWorker {
 public:
  LaneWorker(const ServerWorld& world, const std::string& name, const GradientEncoding& push = {},
             const Encoding& pull = {})
      : client_(Connect(world, pull), push) {
    values = Values(kLarge, 10);
    EXPECT_THAT(client_.Join(WorkerRequest(name, kLarge), absl::MakeSpan(values)), IsOk());
  }

  absl::Status Round(const Values& gradient) {
    return client_.PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(values)).status();
  }

  // Its gradient leaves in two parts before it is known of which batch it is.
  absl::Status RoundSentEarly(const Values& gradient) {
    const SharedFloats all = Share(gradient);
    const uint64_t half = kLarge / 2;
    client_.SendEarly(half, all.Part(half, kLarge - half));
    client_.SendEarly(0, all.Part(0, half));
    return client_.PushPull(all, 1, absl::nullopt, absl::MakeSpan(values)).status();
  }

  void Leave() { EXPECT_THAT(client_.Leave({}), IsOk()); }

  Values values;

 private:
  static std::unique_ptr<ServerConnection> Connect(const ServerWorld& world, const Encoding& pull) {
    GrpcConnectionOptions options;
    options.address = world.address().ToString();
    options.connections = kConnections;
    options.pull_encoding = pull;
    auto connection = ConnectOverGrpc(options);
    EXPECT_THAT(connection, IsOk());
    return *std::move(connection);
  }

  ParameterClient client_;
};

Values After(int rounds) {
  Values values(kLarge, 10);
  const Values gradient = Ramp(0.5);
  for (int i = 0; i < rounds; ++i) {
    for (uint64_t j = 0; j < kLarge; ++j) values[j] -= gradient[j];
  }
  return values;
}

// Every element arrives in each round, whichever connection carries it.
void ExpectThreeRounds(LaneWorker& worker, absl::Status (LaneWorker::*round)(const Values&)) {
  for (int i = 1; i <= 3; ++i) {
    ASSERT_THAT((worker.*round)(Ramp(0.5)), IsOk());
    ASSERT_EQ(worker.values, After(i));
  }
}

TEST(LanesTest, AWorkersTensorsGoThroughAllItsConnections) {
  ServerWorld world(Sync(1), ParametersOnly(kLarge));
  LaneWorker worker(world, "a");
  ExpectThreeRounds(worker, &LaneWorker::Round);
  // The world has a connection of its own, that has carried next to nothing.
  std::vector<uint64_t> large;
  for (const int socket : SocketsTo(world.address().port)) {
    const uint64_t bytes = BytesSent(socket);
    if (bytes > kChunkElements * sizeof(float)) large.push_back(bytes);
  }
  EXPECT_THAT(large, SizeIs(kConnections));
  worker.Leave();
}

TEST(LanesTest, SoDoPartsThatLeaveEarly) {
  ServerWorld world(Sync(1), ParametersOnly(kLarge));
  LaneWorker worker(world, "a");
  ExpectThreeRounds(worker, &LaneWorker::RoundSentEarly);
  worker.Leave();
}

TEST(LanesTest, WorkersSideBySideGetTheMeanOfTheirGradients) {
  ServerWorld world(Sync(2), ParametersOnly(kLarge));
  Values ends[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] {
      LaneWorker worker(world, i == 0 ? "a" : "b");
      const Values gradient = Ramp(i == 0 ? 0.75 : 0.25);
      for (int round = 0; round < 3; ++round) EXPECT_THAT(worker.Round(gradient), IsOk());
      ends[i] = worker.values;
      worker.Leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[0], After(3));
}

TEST(LanesTest, EncodedChunksGoThroughLanesToo) {
  ServerWorld world(Sync(1), ParametersOnly(kLarge));
  GradientEncoding push;
  push.choice = *ParseEncodingChoice("float32/planes/zstd:1");
  LaneWorker worker(world, "a", push, *ParseEncoding("float32/planes/zstd:1"));
  ExpectThreeRounds(worker, &LaneWorker::Round);
  worker.Leave();
}

// Whichever breaks, that of the worker's session or another: the worker goes on.
TEST(LanesTest, AConnectionThatBreaksBetweenTwoRoundsCostsNothing) {
  ServerWorld world(Sync(1), ParametersOnly(kLarge));
  const std::set<int> others = SocketsTo(world.address().port);
  LaneWorker worker(world, "a");
  int rounds = 0;
  const auto round = [&] {
    ASSERT_THAT(worker.Round(Ramp(0.5)), IsOk());
    ASSERT_EQ(worker.values, After(++rounds));
  };
  round();
  for (int broken = 0; broken < kConnections; ++broken) {
    std::set<int> own = SocketsTo(world.address().port);
    for (const int socket : others) own.erase(socket);
    ASSERT_GT(own.size(), static_cast<size_t>(broken));
    shutdown(*std::next(own.begin(), broken), SHUT_RDWR);
    round();
    round();
  }
  EXPECT_EQ(world.shard().Describe().step, Step(rounds));
  worker.Leave();
}

TEST(LanesTest, AGradientThatIsNoNumberIsNamedWhicheverWayItWent) {
  ServerWorld world(Sync(1), ParametersOnly(kLarge));
  LaneWorker worker(world, "a");
  for (uint64_t chunk = 0; chunk < kLarge / kChunkElements; ++chunk) {
    Values gradient = Ramp(0.5);
    gradient[chunk * kChunkElements] = kNan;
    EXPECT_THAT(worker.Round(gradient), IsError(Reason::kNotFinite, HasSubstr("is nan")));
  }
  EXPECT_THAT(worker.Round(Ramp(0.5)), IsOk());
  EXPECT_EQ(worker.values, After(1));
  worker.Leave();
}

}  // namespace
}  // namespace sluice
