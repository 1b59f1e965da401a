#include "server/server_flags.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/connect.h"
#include "tests/testing/json.h"
#include "tests/testing/status.h"
#include "worker/grpc_connection.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// The flags of a command line that is right.
ServerFlags Parse(std::vector<std::string> arguments) {
  CLI::App app;
  ServerFlags flags;
  AddServerFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    ADD_FAILURE() << error.what();
  }
  return flags;
}

// What is wrong with a command line.
std::string ComplaintAbout(const std::string& argument) {
  CLI::App app;
  ServerFlags flags;
  AddServerFlags(app, flags);
  try {
    app.parse(std::vector<std::string>{argument});
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "nothing";
}

MpiWorld RanksOnOneNode(int size) {
  MpiWorld world;
  world.size = size;
  return world;
}

MpiWorld RanksOnManyNodes(int size) {
  MpiWorld world = RanksOnOneNode(size);
  world.one_node = false;
  return world;
}

// What the server tells the first worker that joins it.
absl::StatusOr<Welcome> WelcomeAt(const std::string& address, const std::string& token = "",
                                  const std::string& job_id = "") {
  JoinRequest request = WorkerRequest("a");
  request.job_id = job_id;
  return ConnectTo(address, token)->Join(request);
}

// What it tells a worker of its launch.
absl::StatusOr<Welcome> WelcomeWith(const JobTicket& ticket,
                                    absl::Duration timeout = absl::Seconds(30)) {
  GrpcConnectionOptions options;
  options.connect_timeout = timeout;
  options.address = ticket.address;
  options.token = ticket.token;
  if (!ticket.credentials.key.empty()) options.credentials = SourceOf(ticket.credentials);
  const auto connection = ConnectOverGrpc(options);
  if (!connection.ok()) return connection.status();
  JoinRequest request = WorkerRequest("a");
  request.job_id = ticket.job_id;
  return (*connection)->Join(request);
}

// The terms of a server that was started by hand with these flags.
Welcome StandaloneTerms(std::vector<std::string> arguments) {
  arguments.push_back("--listen=127.0.0.1:0");
  const auto server = StartStandaloneServer(Parse(arguments));
  EXPECT_THAT(server, IsOk());
  if (!server.ok()) return Welcome();
  const auto welcome = WelcomeAt((*server)->address().ToString());
  EXPECT_THAT(welcome, IsOk());
  return welcome.value_or(Welcome());
}

// The terms of a server that mpirun started with three workers.
Welcome LaunchedTerms(const std::vector<std::string>& arguments) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse(arguments), RanksOnOneNode(4), &ticket);
  EXPECT_THAT(server, IsOk());
  if (!server.ok()) return Welcome();
  const auto welcome = WelcomeWith(ticket);
  EXPECT_THAT(welcome, IsOk());
  return welcome.value_or(Welcome());
}

std::string Words(const Welcome& welcome) {
  const Consistency& terms = welcome.consistency;
  return absl::StrCat(std::string(ConsistencyModeName(terms.mode)),
                      terms.HasQuorum() ? absl::StrCat(" of ", terms.quorum) : "", ", ",
                      welcome.workers, " workers",
                      terms.max_staleness.has_value()
                          ? absl::StrCat(", staleness up to ", *terms.max_staleness)
                          : "");
}

// ---- Terms ----

TEST(ServerFlagsTest, WaitsForOneWorkerWhenStartedByHand) {
  EXPECT_EQ(Words(StandaloneTerms({})), "sync, 1 workers");
  EXPECT_EQ(Words(StandaloneTerms({"--mode=async"})), "async of 1, 1 workers");
}

TEST(ServerFlagsTest, WaitsForAllThatWereLaunched) {
  EXPECT_EQ(Words(LaunchedTerms({})), "sync, 3 workers");
  EXPECT_EQ(Words(LaunchedTerms({"--mode=async"})), "async of 1, 3 workers");
  EXPECT_EQ(Words(LaunchedTerms({"--mode=ssp"})), "ssp, 3 workers");
}

TEST(ServerFlagsTest, WaitsForAsManyWorkersAsItIsTold) {
  EXPECT_EQ(Words(StandaloneTerms({"--workers=4"})), "sync, 4 workers");
  EXPECT_EQ(Words(LaunchedTerms({"--workers=2"})), "sync, 2 workers");
}

TEST(ServerFlagsTest, LeavesOneOfTheLaunchedWorkersForABackup) {
  EXPECT_EQ(Words(LaunchedTerms({"--mode=backup"})), "backup of 2, 3 workers");
  EXPECT_EQ(Words(StandaloneTerms({"--mode=backup", "--quorum=4"})), "backup of 4, 4 workers");
}

TEST(ServerFlagsTest, KeepsQuorumAndNumberOfWorkersApartInAsync) {
  EXPECT_EQ(Words(StandaloneTerms({"--mode=async", "--quorum=2", "--workers=4"})),
            "async of 2, 4 workers");
  EXPECT_EQ(Words(LaunchedTerms({"--mode=async", "--quorum=2"})), "async of 2, 3 workers");
}

TEST(ServerFlagsTest, BoundsTheStalenessIfAsked) {
  EXPECT_EQ(Words(StandaloneTerms({"--mode=bounded", "--max-staleness=7"})),
            "bounded of 1, 1 workers, staleness up to 7");
  EXPECT_EQ(Words(StandaloneTerms({"--mode=bounded", "--max-staleness=0"})),
            "bounded of 1, 1 workers, staleness up to 0");
}

TEST(ServerFlagsTest, TellsWorkersTheirLease) {
  EXPECT_EQ(StandaloneTerms({}).lease, absl::Seconds(10));
  EXPECT_EQ(StandaloneTerms({"--lease=2.5"}).lease, absl::Milliseconds(2500));
}

TEST(ServerFlagsTest, LetsNoMoreWorkersInThanItMay) {
  const auto server = StartStandaloneServer(Parse({"--listen=127.0.0.1:0", "--max-workers=1"}));
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address().ToString();
  const auto first = ConnectTo(address);
  ASSERT_THAT(first->Join(WorkerRequest("first")), IsOk());
  EXPECT_THAT(WelcomeAt(address), IsError(Reason::kTooManyWorkers, HasSubstr("--max-workers")));
}

TEST(ServerFlagsTest, RefusesAModelThatTheMachineDoesNotHold) {
  const auto server = StartStandaloneServer(Parse({"--listen=127.0.0.1:0"}));
  ASSERT_THAT(server, IsOk());
  LayoutRange tebibyte;
  tebibyte.name = "w";
  tebibyte.shape = {1u << 30, 1u << 8};
  tebibyte.length = Layout::kMaxElements;
  JoinRequest request = WorkerRequest("a");
  request.layout = Layout::Create({tebibyte}).value();
  EXPECT_THAT(ConnectTo((*server)->address().ToString())->Join(request),
              IsError(Reason::kModelTooLarge, HasSubstr("has 274877906944 elements")));
}

// ---- Addresses and credentials ----

TEST(ServerFlagsTest, ListensOnAPrivateSocketIfAllRanksShareTheNode) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse({}), RanksOnOneNode(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(ticket.address, StartsWith("unix:/"));
  EXPECT_EQ(ticket.address, (*server)->address().ToString());
  EXPECT_THAT(ticket.job_id, MatchesRegex("[0-9a-f]{8}"));
  EXPECT_THAT(ticket.token, MatchesRegex("[0-9a-f]{64}"));
}

TEST(ServerFlagsTest, AsksALaunchedWorkerForItsJobsToken) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse({}), RanksOnOneNode(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(WelcomeAt(ticket.address), IsError(Reason::kBadToken, _));
  EXPECT_THAT(WelcomeAt(ticket.address, ticket.token, "another"), IsError(Reason::kWrongJob, _));
  EXPECT_THAT(WelcomeWith(ticket), IsOk());
}

TEST(ServerFlagsTest, TellsOtherNodesTheAddressOfTheInterface) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse({"--interface=lo"}), RanksOnManyNodes(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", (*server)->address().port));
  EXPECT_THAT(WelcomeWith(ticket), IsOk());
}

TEST(ServerFlagsTest, TellsOtherNodesTheHostThatIsAdvertised) {
  JobTicket ticket;
  const auto server =
      StartLaunchedServer(Parse({"--advertise=node7"}), RanksOnManyNodes(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ticket.address, absl::StrCat("node7:", (*server)->address().port));
}

TEST(ServerFlagsTest, TellsWhereItWasToldToListen) {
  JobTicket ticket;
  const auto server =
      StartLaunchedServer(Parse({"--listen=127.0.0.1:0"}), RanksOnOneNode(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", (*server)->address().port));
}

TEST(ServerFlagsTest, DoesNotTellOtherNodesToReachEveryAddress) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse({"--listen=0.0.0.0:0", "--interface=lo"}),
                                          RanksOnManyNodes(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", (*server)->address().port));
}

TEST(ServerFlagsTest, AsksForTheTokenInItsFile) {
  const std::string path = ::testing::TempDir() + "/token";
  std::ofstream(path) << "secret\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const auto server =
      StartStandaloneServer(Parse({"--listen=127.0.0.1:0", absl::StrCat("--token-file=", path)}));
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address().ToString();
  EXPECT_THAT(WelcomeAt(address, "wrong"), IsError(Reason::kBadToken, _));
  EXPECT_THAT(WelcomeAt(address, "secret"), IsOk());
}

// ---- TLS ----

// Where a server started with these flags, in a launch over TCP, and what it tells its workers.
JobTicket TicketOfTcp(std::vector<std::string> arguments, std::unique_ptr<Server>* server) {
  arguments.push_back("--listen=127.0.0.1:0");
  JobTicket ticket;
  auto started = StartLaunchedServer(Parse(arguments), RanksOnOneNode(2), &ticket);
  EXPECT_THAT(started, IsOk());
  if (started.ok()) *server = *std::move(started);
  return ticket;
}

TEST(SecurityFlagsTest, ALaunchOverTcpBringsItsOwnCredentials) {
  std::unique_ptr<Server> server, other;
  const JobTicket ticket = TicketOfTcp({}, &server);
  EXPECT_THAT(WelcomeWith(ticket), IsOk());
  // Who knows address and token alone, or another launch's credentials, gets no further than the
  // handshake.
  const auto shut_out = HasCode(absl::StatusCode::kUnavailable, HasSubstr("no server at"));
  JobTicket stranger = ticket;
  stranger.credentials = {};
  EXPECT_THAT(WelcomeWith(stranger, absl::Milliseconds(200)), shut_out);
  stranger.credentials = TicketOfTcp({}, &other).credentials;
  EXPECT_THAT(WelcomeWith(stranger, absl::Milliseconds(200)), shut_out);
  stranger.credentials.authority = ticket.credentials.authority;
  EXPECT_THAT(WelcomeWith(stranger, absl::Milliseconds(200)), shut_out);
}

TEST(SecurityFlagsTest, ALaunchOnOneNodeNeedsNone) {
  JobTicket ticket;
  const auto server = StartLaunchedServer(Parse({}), RanksOnOneNode(2), &ticket);
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ticket.credentials.key, "");
}

TEST(SecurityFlagsTest, ALaunchSpeaksPlaintextIfToldTo) {
  std::unique_ptr<Server> server;
  const JobTicket ticket = TicketOfTcp({"--insecure"}, &server);
  EXPECT_EQ(ticket.credentials.key, "");
  EXPECT_THAT(WelcomeWith(ticket), IsOk());
}

auto IsRefusedFor(const std::string& why) {
  return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

TEST(SecurityFlagsTest, PlaintextIsForThisNode) {
  for (const char* listen : {"--listen=127.0.0.1:0", "--listen=localhost:0"}) {
    EXPECT_THAT(StartStandaloneServer(Parse({listen})), IsOk());
    EXPECT_THAT(StartStandaloneServer(Parse({listen, "--insecure"})), IsOk());
  }
  const auto refused = IsRefusedFor("in plaintext at 0.0.0.0:0 the network could read and change");
  EXPECT_THAT(StartStandaloneServer(Parse({"--listen=0.0.0.0:0"})), refused);
  EXPECT_THAT(StartStandaloneServer(Parse({"--listen=0.0.0.0:0", "--insecure"})), refused);
  EXPECT_THAT(StartStandaloneServer(Parse({"--listen=0.0.0.0:0", "--insecure-on-network"})),
              IsOk());
  JobTicket ticket;
  EXPECT_THAT(StartLaunchedServer(Parse({"--insecure"}), RanksOnManyNodes(2), &ticket),
              IsRefusedFor("--insecure-on-network"));
}

TEST(SecurityFlagsTest, RefusesFilesThatSayLittleOrTooMuch) {
  const std::string listen = "--listen=127.0.0.1:0";
  EXPECT_THAT(StartStandaloneServer(Parse({listen, "--tls-cert=c"})),
              IsRefusedFor("takes all three of --tls-cert, --tls-key and --tls-ca"));
  const std::vector<std::string> files = {"--tls-cert=c", "--tls-key=k", "--tls-ca=a"};
  std::vector<std::string> both = files;
  both.insert(both.end(), {listen, "--insecure"});
  EXPECT_THAT(StartStandaloneServer(Parse(both)), IsRefusedFor("give one of them"));
  std::vector<std::string> on_unix = files;
  on_unix.push_back("--listen=unix:/tmp/s");
  EXPECT_THAT(StartStandaloneServer(Parse(on_unix)), IsRefusedFor("no TLS on unix:/tmp/s"));
  JobTicket ticket;
  EXPECT_THAT(StartLaunchedServer(Parse(files), RanksOnOneNode(2), &ticket),
              IsRefusedFor("meet on a private unix socket, on which there is no TLS"));
  std::vector<std::string> missing = files;
  missing.push_back(listen);
  EXPECT_THAT(StartStandaloneServer(Parse(missing)),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("cannot read c: No such file")));
}

TEST(SecurityFlagsTest, TakesItsCredentialsFromFiles) {
  const TestAuthority authority;
  const std::string folder = ::testing::TempDir() + "/security";
  const TlsFiles files = WriteCredentials(authority.Server(), folder);
  const auto server =
      StartStandaloneServer(Parse({"--listen=127.0.0.1:0", "--tls-cert=" + files.certificate,
                                   "--tls-key=" + files.key, "--tls-ca=" + files.authority}));
  ASSERT_THAT(server, IsOk());
  JobTicket ticket{(*server)->address().ToString(), "", ""};
  ticket.credentials = authority.Client({Role::kWorker});
  EXPECT_THAT(WelcomeWith(ticket), IsOk());
}

// ---- The configuration ----

std::string ConfigOf(const std::vector<std::string>& arguments) {
  const auto config = DescribeConfig(Parse(arguments));
  EXPECT_THAT(config, IsOk());
  return config.value_or("");
}

TEST(ConfigTest, TellsEveryLimitAndItsFlag) {
  const std::string defaults = ConfigOf({});
  EXPECT_EQ(JsonAt(defaults, "limits.message_bytes"), "4194304");
  EXPECT_EQ(JsonAt(defaults, "limits.metadata_bytes"), "8192");
  EXPECT_EQ(JsonAt(defaults, "limits.streams_per_connection"), "256");
  EXPECT_EQ(JsonAt(defaults, "limits.handshake"), "10s");
  EXPECT_THAT(JsonAt(defaults, "limits.parameters"), MatchesRegex("[1-9][0-9]{6,}"));
  EXPECT_EQ(JsonAt(defaults, "limits.tensors"), "65536");
  EXPECT_EQ(JsonAt(defaults, "limits.tensor_name_bytes"), "256");
  EXPECT_EQ(JsonAt(defaults, "limits.dimensions"), "8");
  EXPECT_EQ(JsonAt(defaults, "limits.workers"), "1024");
  EXPECT_EQ(JsonAt(defaults, "limits.worker_name_bytes"), "128");
  EXPECT_THAT(JsonAt(defaults, "limits.bytes_in_flight"), MatchesRegex("[1-9][0-9]{6,}"));
  EXPECT_EQ(JsonAt(defaults, "limits.lease"), "10s");
  const std::string tight = ConfigOf({"--max-streams=32", "--handshake-timeout=2.5",
                                      "--max-workers=8", "--max-in-flight=12", "--lease=3"});
  EXPECT_EQ(JsonAt(tight, "limits.streams_per_connection"), "32");
  EXPECT_EQ(JsonAt(tight, "limits.handshake"), "2.500s");
  EXPECT_EQ(JsonAt(tight, "limits.workers"), "8");
  EXPECT_EQ(JsonAt(tight, "limits.bytes_in_flight"), "12000000");
  EXPECT_EQ(JsonAt(tight, "limits.lease"), "3s");
}

TEST(ConfigTest, TellsWhatTheFlagsComeTo) {
  const std::string config = ConfigOf({"--listen=127.0.0.1:7070", "--mode=backup", "--workers=4",
                                       "--clip-norm=2", "--start-timeout=60", "--threads=3"});
  EXPECT_EQ(JsonAt(config, "listen"), "127.0.0.1:7070");
  EXPECT_EQ(JsonAt(config, "workers"), "4");
  EXPECT_EQ(JsonAt(config, "consistency.mode"), "BACKUP");
  EXPECT_EQ(JsonAt(config, "consistency.quorum"), "3");
  EXPECT_EQ(JsonAt(config, "guards.clip_norm"), "2");
  EXPECT_EQ(JsonAt(config, "start_timeout"), "60s");
  EXPECT_EQ(JsonAt(config, "threads"), "3");
  EXPECT_EQ(JsonAt(config, "tls"), "absent");
}

TEST(ConfigTest, TellsOfSecretsOnlyThatThereAreSome) {
  const std::string path = ::testing::TempDir() + "/config_token";
  std::ofstream(path) << "open sesame\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const std::string config = ConfigOf({"--listen=0.0.0.0:7070", "--token-file=" + path,
                                       "--tls-cert=c.pem", "--tls-key=k.pem", "--tls-ca=a.pem"});
  EXPECT_EQ(JsonAt(config, "token"), "true");
  EXPECT_EQ(JsonAt(config, "tls.key"), "k.pem");
  EXPECT_THAT(config, Not(HasSubstr("sesame")));
}

TEST(ConfigTest, IsRefusedAsTheServerWouldBe) {
  EXPECT_THAT(DescribeConfig(Parse({"--mode=fast"})), IsRefusedFor("no mode \"fast\""));
  EXPECT_THAT(DescribeConfig(Parse({"--listen=0.0.0.0:7070"})),
              IsRefusedFor("--insecure-on-network"));
}

// ---- Bad values ----

TEST(ServerFlagsTest, RefusesValuesThatMakeNoSense) {
  const auto refusal = [](const std::string& argument) {
    return StartStandaloneServer(Parse({"--listen=127.0.0.1:0", argument})).status();
  };
  const auto invalid = [](const std::string& sentence) {
    return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(sentence));
  };
  EXPECT_THAT(refusal("--mode=fast"), invalid("no mode \"fast\"; there are sync, backup"));
  EXPECT_THAT(refusal("--quorum=0"), invalid("quorum is 0; expected at least 1"));
  EXPECT_THAT(refusal("--workers=0"), invalid("--workers is 0, expected at least 1"));
  EXPECT_THAT(refusal("--quorum=5"), invalid("quorum is 5 in sync mode, which has none"));
  EXPECT_THAT(refusal("--max-staleness=3"), invalid("max_staleness is 3 in sync mode"));
  EXPECT_THAT(refusal("--token-file=/nonexistent"),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("cannot read /nonexistent")));
}

TEST(ServerFlagsTest, RefusesAddressesThatMakeNoSense) {
  EXPECT_THAT(StartStandaloneServer(Parse({"--listen=nonsense"})),
              IsError(Reason::kBadArgument, HasSubstr("address \"nonsense\" has no port")));
  EXPECT_THAT(StartStandaloneServer(Parse({})),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("give --listen=host:port")));
  JobTicket ticket;
  EXPECT_THAT(StartLaunchedServer(Parse({"--interface=nonsense"}), RanksOnOneNode(2), &ticket),
              IsError(Reason::kBadArgument, HasSubstr("no interface \"nonsense\"")));
}

TEST(ServerFlagsTest, RefusesALaunchWithoutWorkers) {
  JobTicket ticket;
  EXPECT_THAT(StartLaunchedServer(Parse({}), RanksOnOneNode(1), &ticket),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("at least 2 ranks")));
}

TEST(ServerFlagsTest, RefusesWhatIsNoNumber) {
  EXPECT_THAT(ComplaintAbout("--quorum=many"), AllOf(HasSubstr("--quorum"), HasSubstr("many")));
  EXPECT_THAT(ComplaintAbout("--quorum=-1"), HasSubstr("--quorum"));
  EXPECT_THAT(ComplaintAbout("--max-staleness=4294967296"), HasSubstr("--max-staleness"));
  EXPECT_THAT(ComplaintAbout("--lease=-1"), HasSubstr("--lease"));
  EXPECT_THAT(ComplaintAbout("--lease=0"), HasSubstr("--lease"));
  EXPECT_THAT(ComplaintAbout("--start-timeout=-1"), HasSubstr("--start-timeout"));
  EXPECT_THAT(ComplaintAbout("--max-in-flight=-1"), HasSubstr("--max-in-flight"));
  EXPECT_THAT(ComplaintAbout("--log-step-wait=0"), HasSubstr("--log-step-wait"));
  EXPECT_THAT(ComplaintAbout("--max-step-wait=0"), HasSubstr("--max-step-wait"));
  EXPECT_THAT(ComplaintAbout("--max-workers=0"), HasSubstr("--max-workers"));
  EXPECT_THAT(ComplaintAbout("--max-streams=1"), HasSubstr("--max-streams"));
  EXPECT_THAT(ComplaintAbout("--handshake-timeout=0"), HasSubstr("--handshake-timeout"));
  EXPECT_THAT(ComplaintAbout("--unknown"), HasSubstr("--unknown"));
}

}  // namespace
}  // namespace sluice
