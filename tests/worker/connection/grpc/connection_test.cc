#include "worker/connection/grpc/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/encoding/encoding.h"
#include "common/net/private_directory.h"
#include "common/tensor/shared_memory.h"
#include "common/trace/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/outcome.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tcp_connections.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/status.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

PushHeader HeaderOf(const Welcome& welcome, uint64_t sequence, uint64_t step) {
  PushHeader header;
  header.session = welcome.session;
  header.sequence = Sequence(sequence);
  header.step = Step(step);
  header.incarnation = welcome.incarnation;
  return header;
}

PullRequest PullOf(const Welcome& welcome, uint64_t min_step) {
  PullRequest request;
  request.session = welcome.session;
  request.min_step = Step(min_step);
  return request;
}

// ---- A server that is there ----

// Trains a vector of that size for one step and expects every element to have moved.
void ExpectRoundTrip(uint32_t size) {
  ServerWorld world(Sync(1), ParametersOnly(size));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a", size));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->job_id, "job");
  EXPECT_FALSE(welcome->initialized);
  Values parameters(size), gradient(size), expected(size);
  for (uint32_t i = 0; i < size; ++i) {
    parameters[i] = static_cast<float>(i % 1000);
    gradient[i] = static_cast<float>(i % 7);
    expected[i] = parameters[i] - gradient[i];
  }
  const auto initialized = connection->Initialize(welcome->session, parameters);
  ASSERT_THAT(initialized, IsOk());
  EXPECT_TRUE(initialized->accepted);
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 1, 0), Share(gradient)), Applied(1));
  Values pulled(size, -1);
  const auto header = connection->StartPull(PullOf(*welcome, 1))->Read(absl::MakeSpan(pulled));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->step, Step(1));
  EXPECT_EQ(header->incarnation, Incarnation(1));
  EXPECT_TRUE(pulled == expected);
  EXPECT_THAT(connection->Leave(welcome->session, {{{"accuracy", 0.5}}}), IsOk());
  EXPECT_EQ(world.shard().results(), Results({{"accuracy", 0.5}}));
  EXPECT_EQ(world.Counters(), "1 received: 1 accepted");
}

TEST(GrpcConnectionTest, CarriesOneElement) { ExpectRoundTrip(1); }

TEST(GrpcConnectionTest, CarriesExactlyOneChunk) { ExpectRoundTrip(kChunkElements); }

TEST(GrpcConnectionTest, CarriesAVectorThatIsNoWholeNumberOfChunks) {
  ExpectRoundTrip(kChunkElements + 1);
}

TEST(GrpcConnectionTest, CarriesMoreThanAMessageMayHold) {
  ExpectRoundTrip(5 * kChunkElements + 12345);
}

TEST(GrpcConnectionTest, KeepsItsParametersIfTheyAreTheLatest) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  ASSERT_THAT(connection->Initialize(welcome->session, Values({1, 2, 3})), IsOk());
  PullRequest request = PullOf(*welcome, 0);
  request.have_step = Step(0);
  Values held = {7, 8, 9};
  const auto header = connection->StartPull(request)->Read(absl::MakeSpan(held));
  ASSERT_THAT(header, IsOk());
  EXPECT_TRUE(header->not_modified);
  EXPECT_EQ(held, Values({7, 8, 9}));
}

TEST(GrpcConnectionTest, BringsTheServersReasons) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  const auto other = ConnectTo(world.address().ToString());
  EXPECT_THAT(other->Join(WorkerRequest("b", 4)),
              IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("[4]"), HasSubstr("[3]"))));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("b"));
  ASSERT_THAT(welcome, IsOk());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 1, 0), Share(Values({1, 1, nan}))),
              IsError(Reason::kNotFinite, HasSubstr("w[2] is nan")));
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 2, 1), Share(Values({1, 1, 1}))),
              IsError(Reason::kFutureStep, HasSubstr("the server is at step 0")));
  EXPECT_THAT(connection->Leave(SessionId(999), {}),
              IsError(Reason::kUnknownSession, HasSubstr("session 999")));
}

TEST(GrpcConnectionTest, StatesItsRevisionOfTheProtocol) {
  ServerWorld world(Sync(1));
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  options.revisions.newest = 5;
  const auto connection = ConnectOverGrpc(options);
  ASSERT_THAT(connection, IsOk());
  EXPECT_THAT((*connection)->Join(WorkerRequest("a")),
              IsError(Reason::kVersionMismatch,
                      AllOf(HasSubstr("speaks revision 5"), HasSubstr("upgrade the server"))));
}

// The largest vector that such a connection pushes and pulls in one call, of a few sizes.
uint64_t MostInOneCall(const ServerConnection& connection) {
  uint64_t most = 0;
  for (const uint64_t elements : {0, 1, 4096, 4097, 16384, 16385}) {
    if (connection.CanPushPull(elements)) most = elements;
  }
  return most;
}

TEST(GrpcConnectionTest, PushesAndPullsInOneCallWhereThatIsFasterAndPossible) {
  ShardOptions sharing = Sync(1);
  sharing.snapshots = SnapshotMemory::kShared;
  ServerWorld world(sharing);
  FakeClock clock;
  Trace trace(absl::nullopt, "worker", clock);
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  const auto joined = [&](const JoinRequest& request) {
    auto connection = ConnectOverGrpc(options);
    EXPECT_THAT(connection, IsOk());
    EXPECT_EQ(MostInOneCall(**connection), 0u) << "before it has joined";
    EXPECT_THAT((*connection)->Join(request), IsOk());
    return *std::move(connection);
  };
  EXPECT_EQ(MostInOneCall(*joined(WorkerRequest("plain"))), 16384u);
  EXPECT_FALSE(joined(WorkerRequest("none"))->CanPushPull(0));
  const auto encoding = joined(WorkerRequest("encoding"));
  encoding->UsePullEncoding(*ParseEncoding("bfloat16"));
  EXPECT_EQ(MostInOneCall(*encoding), 0u);
  JoinRequest shares = WorkerRequest("shares");
  shares.memory = *SharedMemory::Create(3);
  EXPECT_EQ(MostInOneCall(*joined(shares)), 4096u);
  options.trace = &trace;
  EXPECT_EQ(MostInOneCall(*joined(WorkerRequest("traced"))), 0u);
  options.trace = nullptr;
  options.one_call = false;
  EXPECT_EQ(MostInOneCall(*joined(WorkerRequest("measured"))), 0u);
}

TEST(GrpcConnectionTest, EndsAtAServerOfARevisionThatIsTooOldForIt) {
  ServerWorld world(Sync(1));
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  options.revisions.oldest = 5;
  const auto connection = ConnectOverGrpc(options);
  ASSERT_THAT(connection, IsOk());
  const JoinRequest request = WorkerRequest("a");
  EXPECT_THAT(
      (*connection)->Join(request),
      IsError(Reason::kVersionMismatch,
              AllOf(HasSubstr("the server speaks revision 4 of the protocol"),
                    HasSubstr("the worker needs 5 or later"), HasSubstr("upgrade the server"))));
  // It has given its session up.
  EXPECT_THAT((*connection)->NextEvent(absl::ZeroDuration()),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("ended the session")));
}

TEST(GrpcConnectionTest, StopsSendingAPushThatWasAnsweredAtItsHeader) {
  const uint32_t size = 8 * kChunkElements;
  ServerWorld world(Bounded(1, 0), ParametersOnly(size));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a", size));
  ASSERT_THAT(welcome, IsOk());
  const Values ones(size, 1);
  ASSERT_THAT(connection->Initialize(welcome->session, ones), IsOk());
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 1, 0), Share(ones)), Applied(1));
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 1, 0), Share(ones)),
              Repeated(Disposition::kApplied, 1));
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 2, 0), Share(ones)), Stale(1, 1));
  EXPECT_EQ(world.Counters(), "3 received: 1 accepted, 1 stale, 1 duplicate");
}

TEST(GrpcConnectionTest, GivesUpAPullThatIsNotRead) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  {
    const auto pull = connection->StartPull(PullOf(*welcome, 1));
    EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  }
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 0; }));
}

TEST(GrpcConnectionTest, SaysThatTheStepHasNotComeYet) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString(), "", absl::Milliseconds(50));
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  Values parameters(3);
  EXPECT_THAT(connection->StartPull(PullOf(*welcome, 1))->Read(absl::MakeSpan(parameters)),
              HasCode(absl::StatusCode::kDeadlineExceeded, _));
}

TEST(GrpcConnectionTest, TellsOfTheEndOfTraining) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  const auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(ObserverRequest("o")), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Leave("a"), IsOk());
  const auto event = connection->NextEvent(absl::InfiniteDuration());
  ASSERT_THAT(event, IsOk());
  EXPECT_EQ(event->kind, JobEvent::Kind::kTrainingFinished);
  EXPECT_EQ(event->step, Step(1));
}

TEST(GrpcConnectionTest, TellsOfNewRulesAndOfTheEndOfItsSession) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  ASSERT_THAT(ChangeConsistency(world.shard(), Ssp(/*slack=*/3, 1).consistency), IsOk());
  const auto changed = connection->NextEvent(absl::InfiniteDuration());
  ASSERT_THAT(changed, IsOk());
  EXPECT_EQ(changed->kind, JobEvent::Kind::kPolicyChanged);
  EXPECT_EQ(changed->consistency.mode, ConsistencyMode::kSsp);
  EXPECT_EQ(changed->consistency.slack, 3u);
  ASSERT_THAT(world.Evict("a"), IsOk());
  const auto evicted = connection->NextEvent(absl::InfiniteDuration());
  ASSERT_THAT(evicted, IsOk());
  EXPECT_EQ(evicted->kind, JobEvent::Kind::kEvicted);
  EXPECT_THAT(connection->NextEvent(absl::InfiniteDuration()),
              HasCode(absl::StatusCode::kUnavailable, _));
  EXPECT_THAT(connection->Join(WorkerRequest("a")), IsError(Reason::kEvicted, _));
}

TEST(GrpcConnectionTest, LosesNoEventForWhichItDidNotWaitLongEnough) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(connection->NextEvent(absl::Milliseconds(1)),
                HasCode(absl::StatusCode::kDeadlineExceeded, _));
  }
  ASSERT_THAT(world.Evict("a"), IsOk());
  const auto evicted = connection->NextEvent(absl::InfiniteDuration());
  ASSERT_THAT(evicted, IsOk());
  EXPECT_EQ(evicted->kind, JobEvent::Kind::kEvicted);
}

TEST(GrpcConnectionTest, EndsItsSessionThoughItStillWaitsForAnEvent) {
  ServerWorld world(Sync(1));
  auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  EXPECT_THAT(connection->NextEvent(absl::Milliseconds(1)),
              HasCode(absl::StatusCode::kDeadlineExceeded, _));
  connection = nullptr;
  EXPECT_TRUE(
      world.Await([&] { return world.shard().Sessions().at(0).presence == Presence::kLost; }));
}

TEST(GrpcConnectionTest, TellsThatTheServerDrainsAndThatItIsGone) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  world.shard().Drain();
  const auto event = connection->NextEvent(absl::InfiniteDuration());
  ASSERT_THAT(event, IsOk());
  EXPECT_EQ(event->kind, JobEvent::Kind::kDraining);
  Values parameters(3);
  EXPECT_THAT(connection->StartPull(PullOf(*welcome, 1))->Read(absl::MakeSpan(parameters)),
              IsError(Reason::kDraining, HasSubstr("draining")));
  world.Stop();
  EXPECT_THAT(PushThrough(*connection, HeaderOf(*welcome, 1, 0), Share(parameters)),
              HasCode(absl::StatusCode::kUnavailable, _));
  EXPECT_THAT(connection->StartPull(PullOf(*welcome, 1))->Read(absl::MakeSpan(parameters)),
              HasCode(absl::StatusCode::kUnavailable, _));
}

TEST(GrpcConnectionTest, TellsAPullThatWaitsThatTheServerIsGone) {
  ServerWorld world(Sync(1));
  const auto connection = ConnectTo(world.address().ToString());
  const auto welcome = connection->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  const auto pull = connection->StartPull(PullOf(*welcome, 1));
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  world.Stop();
  Values parameters(3);
  EXPECT_TRUE(IsLost(pull->Read(absl::MakeSpan(parameters)).status()));
}

// Without the server's end, the pause would last for ever.
TEST(GrpcConnectionTest, LosesItsSessionWhenItEnds) {
  ServerWorld world(Sync(1));
  auto connection = ConnectTo(world.address().ToString());
  ASSERT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  connection = nullptr;
  EXPECT_TRUE(world.Await([&] { return world.shard().Sessions()[0].presence == Presence::kLost; }));
}

// It has given up a further connection, for which there were no credentials.
TEST(GrpcConnectionTest, OpensItsFurtherConnectionsAnewWhenItReconnects) {
  constexpr uint32_t kSize = 8 * kChunkElements;  // enough for two connections
  const TestAuthority authority;
  const TlsWorld world(SourceOf(authority.Server()));
  const Credentials credentials = authority.Client({Role::kWorker});
  bool fails = false;
  int given = 0;
  GrpcConnectionOptions options;
  options.address = world.address();
  options.connections = 2;
  options.credentials = [&]() -> absl::StatusOr<Credentials> {
    if (fails) return absl::NotFoundError("no credentials");
    ++given;
    return credentials;
  };
  auto connection = ConnectOverGrpc(options);
  ASSERT_THAT(connection, IsOk());
  auto welcome = (*connection)->Join(WorkerRequest("a", kSize));
  ASSERT_THAT(welcome, IsOk());
  const SharedFloats values = Share(Values(kSize, 1));
  ASSERT_THAT((*connection)->Initialize(welcome->session, values.values), IsOk());
  fails = true;
  EXPECT_THAT(PushThrough(**connection, HeaderOf(*welcome, 1, 0), values), Applied(1));
  fails = false;
  EXPECT_THAT(PushThrough(**connection, HeaderOf(*welcome, 2, 1), values), Applied(2));
  EXPECT_EQ(given, 1);  // it does not try again by itself
  ASSERT_THAT((*connection)->Reconnect(), IsOk());
  welcome = (*connection)->Join(WorkerRequest("a", kSize));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(given, 2);
  EXPECT_THAT(PushThrough(**connection, HeaderOf(*welcome, 3, 2), values), Applied(3));
  EXPECT_EQ(given, 3);
}

TEST(GrpcConnectionTest, SharesTcpWithinAProcessUnlessToldNotTo) {
  const ServerWorld world(Sync(1));
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  std::vector<std::unique_ptr<ServerConnection>> connections;
  const auto count_after_next = [&] {
    auto connection = ConnectOverGrpc(options);
    EXPECT_THAT(connection, IsOk());
    if (connection.ok()) connections.push_back(*std::move(connection));
    return ConnectionsTo(world.address().port);
  };
  EXPECT_EQ(count_after_next(), 1);
  EXPECT_EQ(count_after_next(), 1);
  options.own_connection = true;
  EXPECT_EQ(count_after_next(), 2);
  EXPECT_EQ(count_after_next(), 3);
}

TEST(GrpcConnectionTest, PresentsItsToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const std::string address = world.address().ToString();
  const auto friendly = ConnectTo(address, "secret");
  const auto welcome = friendly->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(friendly->Initialize(welcome->session, Values({1, 2, 3})), IsOk());
  EXPECT_THAT(PushThrough(*friendly, HeaderOf(*welcome, 1, 0), Share(Values({1, 1, 1}))),
              Applied(1));
  Values parameters(3);
  EXPECT_THAT(friendly->StartPull(PullOf(*welcome, 1))->Read(absl::MakeSpan(parameters)), IsOk());
  EXPECT_THAT(friendly->Leave(welcome->session, {}), IsOk());
  EXPECT_THAT(ConnectTo(address, "wrong")->Join(WorkerRequest("b")),
              IsError(Reason::kBadToken, HasSubstr("is not this server's")));
  EXPECT_THAT(ConnectTo(address)->Join(WorkerRequest("b")),
              IsError(Reason::kBadToken, HasSubstr("the call has no job token")));
}

TEST(GrpcConnectionTest, ReachesAUnixSocket) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  Address address;
  address.unix_path = (*directory)->path() + "/server.sock";
  FakeClock clock;
  Shard shard(Sync(1), clock);
  const auto server = StartGrpcServer({address, "", nullptr}, {&shard});
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(ConnectTo(address.ToString())->Join(WorkerRequest("a")), IsOk());
  (*server)->Shutdown(absl::ZeroDuration());
}

TEST(GrpcConnectionTest, ReachesTheNextServerOnItsUnixSocket) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  Address address;
  address.unix_path = (*directory)->path() + "/server.sock";
  std::unique_ptr<ServerConnection> connection;
  for (int life = 0; life < 3; ++life) {
    FakeClock clock;
    Shard shard(Sync(1), clock);
    const auto server = StartGrpcServer({address, "", nullptr}, {&shard});
    ASSERT_THAT(server, IsOk());
    if (connection == nullptr) connection = ConnectTo(address.ToString());
    ASSERT_THAT(connection->Reconnect(), IsOk());
    EXPECT_THAT(connection->Join(WorkerRequest("a")), IsOk());
    (*server)->Shutdown(absl::ZeroDuration());
    EXPECT_THAT(connection->NextEvent(absl::InfiniteDuration()),
                HasCode(absl::StatusCode::kUnavailable, _));
  }
}

// ---- A server that is not there ----

// The congestion control of this process's TCP sockets of which one end has the port.
std::vector<std::string> CongestionAt(uint16_t port) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in6 own = {}, peer = {};
    socklen_t size = sizeof(own), peer_size = sizeof(peer);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    if (ntohs(own.sin6_port) != port && ntohs(peer.sin6_port) != port) continue;
    char name[16] = "";
    socklen_t length = sizeof(name);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) found.emplace_back(name);
  }
  return found;
}

TEST(GrpcConnectionTest, SendsWithoutPaceWithinAMachine) {
  const ServerWorld world(Sync(1));
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  const auto connection = ConnectOverGrpc(options);
  ASSERT_THAT(connection, IsOk());
  // The worker's socket, and the server's two descriptors of the other end.
  EXPECT_THAT(CongestionAt(world.address().port), ::testing::ElementsAre("reno", "reno", "reno"));
}

// A port of this machine that is taken; connections to it are refused until Listen().
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    name_.sin_family = AF_INET;
    name_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name_.sin_port = htons(FreePort());  // which stays this test's when it is released
    EXPECT_EQ(bind(socket_, Name(), sizeof(name_)), 0);
  }
  ~TakenPort() { Release(); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  Address address() const {
    Address address;
    address.host = "127.0.0.1";
    address.port = ntohs(name_.sin_port);
    return address;
  }
  void Listen() { EXPECT_EQ(listen(socket_, 8), 0); }
  // Accepts the next connection and closes it.
  void HangUpOnSomebody() { close(accept(socket_, nullptr, nullptr)); }
  void Release() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

 private:
  sockaddr* Name() { return reinterpret_cast<sockaddr*>(&name_); }

  int socket_;
  sockaddr_in name_ = {};
};

TEST(GrpcConnectionTest, NamesTheAddressThatItCannotReachAndWhy) {
  const TakenPort port;
  GrpcConnectionOptions options;
  options.address = port.address().ToString();
  options.connect_timeout = absl::Seconds(2);
  EXPECT_THAT(ConnectOverGrpc(options),
              HasCode(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr(absl::StrCat("no server at ", options.address, " within 2s")),
                            HasSubstr("Connection refused"), HasSubstr("is it running"))));
}

TEST(GrpcConnectionTest, WaitsNoLongerForAServerThatIsNotExpected) {
  GrpcConnectionOptions options;
  options.address = "unix:/nonexistent/server.sock";
  options.connect_timeout = absl::InfiniteDuration();
  options.check = [] { return absl::UnavailableError("it is over"); };
  EXPECT_THAT(ConnectOverGrpc(options),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("it is over")));
}

TEST(GrpcConnectionTest, NamesTheSocketThatIsNotThere) {
  GrpcConnectionOptions options;
  options.address = "unix:/nonexistent/server.sock";
  options.connect_timeout = absl::ZeroDuration();
  EXPECT_THAT(ConnectOverGrpc(options),
              HasCode(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr("no server at unix:/nonexistent/server.sock within 0"),
                            HasSubstr("No such file or directory"))));
}

TEST(GrpcConnectionTest, NamesTheHostThatHasNoAddress) {
  GrpcConnectionOptions options;
  options.address = "no-such-host.invalid:7070";
  options.connect_timeout = absl::Milliseconds(10);
  EXPECT_THAT(ConnectOverGrpc(options),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("no-such-host.invalid:7070")));
}

TEST(GrpcConnectionTest, WaitsForAServerThatStartsLater) {
  TakenPort port;
  port.Listen();
  std::unique_ptr<ServerConnection> connection;
  std::thread worker([&] { connection = ConnectTo(port.address().ToString()); });
  port.HangUpOnSomebody();  // the worker has tried in vain
  port.Release();
  FakeClock clock;
  Shard shard(Sync(1), clock);
  const auto server = StartGrpcServer({port.address(), "", nullptr}, {&shard});
  ASSERT_THAT(server, IsOk());
  worker.join();
  EXPECT_THAT(connection->Join(WorkerRequest("a")), IsOk());
  (*server)->Shutdown(absl::ZeroDuration());
}

}  // namespace
}  // namespace sluice
