#include "server/program/server_flags.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_flags.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

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

// What the server tells the first worker that joins it.
absl::StatusOr<Welcome> WelcomeAt(const std::string& address, const std::string& token = "",
                                  const std::string& job_id = "") {
  JoinRequest request = WorkerRequest("a");
  request.job_id = job_id;
  return ConnectTo(address, token)->Join(request);
}

// The terms of a server that was started by hand with these flags.
Welcome StandaloneTerms(std::vector<std::string> arguments) {
  arguments.push_back("--listen=127.0.0.1:0");
  const auto server = StartStandaloneServer(ParseServerFlags(arguments));
  EXPECT_THAT(server, IsOk());
  if (!server.ok()) return Welcome();
  const auto welcome = WelcomeAt((*server)->address().ToString());
  EXPECT_THAT(welcome, IsOk());
  return welcome.value_or(Welcome());
}

// The terms of a server that mpirun started with three workers.
Welcome LaunchedTerms(const std::vector<std::string>& arguments) {
  const auto launched = Launch(arguments, RanksOnOneNode(4));
  EXPECT_THAT(launched, IsOk());
  if (!launched.ok()) return Welcome();
  const auto welcome = JoinWith(launched->identity.ticket);
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
  EXPECT_EQ(Words(LaunchedTerms({"--mode=bounded"})), "bounded of 1, 3 workers, staleness up to 6");
}

TEST(ServerFlagsTest, WaitsForAsManyWorkersAsItIsTold) {
  EXPECT_EQ(Words(StandaloneTerms({"--workers=4"})), "sync, 4 workers");
  EXPECT_EQ(Words(LaunchedTerms({"--workers=3"})), "sync, 3 workers");
  EXPECT_THAT(Launch({"--workers=2"}, RanksOnOneNode(4)).status(),
              HasCode(absl::StatusCode::kInvalidArgument,
                      "--workers=2, but mpirun has launched 3 workers; leave --workers out under "
                      "mpirun"));
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

TEST(ServerFlagsTest, HasAPageOnlyIfAsked) {
  EXPECT_FALSE(ServerOptionsFrom(ParseServerFlags({}), 0)->page.has_value());
  const auto options = ServerOptionsFrom(ParseServerFlags({"--page=127.0.0.1:8080"}), 3);
  ASSERT_THAT(options, IsOk());
  ASSERT_TRUE(options->page.has_value());
  EXPECT_EQ(options->page->address.ToString(), "127.0.0.1:8080");
  EXPECT_EQ(options->page->credentials, nullptr);
}

TEST(ServerFlagsTest, RefusesRunsForAPageThatIsNotThere) {
  EXPECT_THAT(ServerOptionsFrom(ParseServerFlags({"--page-runs=runs"}), 3),
              HasCode(absl::StatusCode::kInvalidArgument,
                      "--page-runs=runs needs the page that shows the runs; give --page=ADDRESS"));
}

TEST(ServerFlagsTest, RefusesAPageThatOthersOnTheNetworkCouldRead) {
  for (const uint32_t launched_workers : {0U, 3U}) {
    EXPECT_THAT(ServerOptionsFrom(ParseServerFlags({"--page=node7:8080"}), launched_workers),
                HasCode(absl::StatusCode::kInvalidArgument,
                        StartsWith("--page=node7:8080 is beyond loopback")));
  }
}

TEST(ServerFlagsTest, LetsNoMoreWorkersInThanItMay) {
  const auto server =
      StartStandaloneServer(ParseServerFlags({"--listen=127.0.0.1:0", "--max-workers=1"}));
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address().ToString();
  const auto first = ConnectTo(address);
  ASSERT_THAT(first->Join(WorkerRequest("first")), IsOk());
  EXPECT_THAT(WelcomeAt(address), IsError(Reason::kTooManyWorkers, HasSubstr("--max-workers")));
}

TEST(ServerFlagsTest, RefusesAModelThatTheMachineDoesNotHold) {
  const auto server = StartStandaloneServer(ParseServerFlags({"--listen=127.0.0.1:0"}));
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
  const auto launched = Launch({}, RanksOnOneNode(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_THAT(ticket.address, StartsWith("unix:/"));
  EXPECT_EQ(ticket.address, launched->server->address().ToString());
  EXPECT_THAT(ticket.job_id, MatchesRegex("[0-9a-f]{8}"));
  EXPECT_THAT(ticket.token, MatchesRegex("[0-9a-f]{64}"));
}

TEST(ServerFlagsTest, AsksALaunchedWorkerForItsJobsToken) {
  const auto launched = Launch({}, RanksOnOneNode(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_THAT(WelcomeAt(ticket.address), IsError(Reason::kBadToken, _));
  EXPECT_THAT(WelcomeAt(ticket.address, ticket.token, "another"), IsError(Reason::kWrongJob, _));
  EXPECT_THAT(JoinWith(ticket), IsOk());
}

TEST(ServerFlagsTest, TakesThePlaceOfAServerThatDied) {
  auto first = Launch({absl::StrCat("--listen=127.0.0.1:", FreePort())}, RanksOnOneNode(2));
  ASSERT_THAT(first, IsOk());
  const JobTicket ticket = first->identity.ticket;
  const LaunchBrief brief = {RanksOnOneNode(2), "", first->identity};
  first->server = nullptr;
  const auto second = StartLaunchedServer(ParseServerFlags({"--listen=127.0.0.1:0"}), brief);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->identity.ticket.address, ticket.address);
  EXPECT_THAT(JoinWith(ticket), IsOk());
}

TEST(ServerFlagsTest, TellsOtherNodesTheAddressOfTheInterface) {
  const auto launched = Launch({"--interface=lo"}, RanksOnManyNodes(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", launched->server->address().port));
  EXPECT_THAT(JoinWith(ticket), IsOk());
}

TEST(ServerFlagsTest, TellsOtherNodesTheHostThatIsAdvertised) {
  const auto launched = Launch({"--advertise=node7"}, RanksOnManyNodes(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_EQ(ticket.address, absl::StrCat("node7:", launched->server->address().port));
}

TEST(ServerFlagsTest, TellsWhereItWasToldToListen) {
  const auto launched = Launch({"--listen=127.0.0.1:0"}, RanksOnOneNode(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", launched->server->address().port));
}

TEST(ServerFlagsTest, DoesNotTellOtherNodesToReachEveryAddress) {
  const auto launched = Launch({"--listen=0.0.0.0:0", "--interface=lo"}, RanksOnManyNodes(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_EQ(ticket.address, absl::StrCat("127.0.0.1:", launched->server->address().port));
}

TEST(ServerFlagsTest, AsksForTheTokenInItsFile) {
  const std::string path = ::testing::TempDir() + "/token";
  std::ofstream(path) << "secret\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const auto server = StartStandaloneServer(
      ParseServerFlags({"--listen=127.0.0.1:0", absl::StrCat("--token-file=", path)}));
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address().ToString();
  EXPECT_THAT(WelcomeAt(address, "wrong"), IsError(Reason::kBadToken, _));
  EXPECT_THAT(WelcomeAt(address, "secret"), IsOk());
}

// ---- Bad values ----

TEST(ServerFlagsTest, RefusesValuesThatMakeNoSense) {
  const auto refusal = [](const std::string& argument) {
    return StartStandaloneServer(ParseServerFlags({"--listen=127.0.0.1:0", argument})).status();
  };
  const auto invalid = [](const std::string& sentence) {
    return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(sentence));
  };
  EXPECT_THAT(refusal("--mode=fast"),
              invalid("mode \"fast\" is unknown; expected one of sync, backup"));
  EXPECT_THAT(refusal("--quorum=0"), invalid("quorum is 0; expected at least 1"));
  EXPECT_THAT(refusal("--workers=0"), invalid("--workers is 0, expected at least 1"));
  EXPECT_THAT(refusal("--quorum=5"), invalid("quorum is 5 in sync mode, which has none"));
  EXPECT_THAT(refusal("--max-staleness=3"), invalid("max_staleness is 3 in sync mode"));
  EXPECT_THAT(refusal("--on-divergence=restore"), invalid("give --checkpoint-dir=DIRECTORY"));
  EXPECT_THAT(refusal("--token-file=/nonexistent"),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("cannot read /nonexistent")));
}

TEST(ServerFlagsTest, RefusesAddressesThatMakeNoSense) {
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({"--listen=nonsense"})),
              IsError(Reason::kBadArgument, HasSubstr("address \"nonsense\" has no port")));
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({})),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("give --listen=host:port")));
  EXPECT_THAT(Launch({"--interface=nonsense"}, RanksOnOneNode(2)),
              IsError(Reason::kBadArgument, HasSubstr("no interface \"nonsense\"")));
}

TEST(ServerFlagsTest, RefusesALaunchWithoutWorkers) {
  EXPECT_THAT(Launch({}, RanksOnOneNode(1)),
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

TEST(ServerFlagsTest, RefusesNumbersThatNothingCanBeMadeOf) {
  for (const char* flag : {"--lease", "--start-timeout", "--max-in-flight", "--log-step-wait",
                           "--max-step-wait", "--handshake-timeout"}) {
    for (const char* number : {"nan", "inf", "1e300"}) {
      EXPECT_THAT(ComplaintAbout(absl::StrCat(flag, "=", number)),
                  AllOf(HasSubstr(flag), HasSubstr("expected a number from "), HasSubstr(number)));
    }
  }
  EXPECT_THAT(ComplaintAbout("--lease=1e-9"), HasSubstr("--lease"));
}

TEST(ServerFlagsTest, ServesMetricsOnlyWhereTheyAreAskedFor) {
  const auto without = ServerOptionsFrom(ParseServerFlags({}), 0);
  ASSERT_THAT(without, IsOk());
  EXPECT_FALSE(without->metrics.has_value());
  const auto on_loopback = ServerOptionsFrom(ParseServerFlags({"--metrics=localhost:9464"}), 0);
  ASSERT_THAT(on_loopback, IsOk());
  EXPECT_EQ(on_loopback->metrics->address.ToString(), "localhost:9464");
}

TEST(ServerFlagsTest, ServesMetricsBeyondLoopbackOnlyWithCredentials) {
  const std::string metrics = "--metrics=0.0.0.0:9464";
  EXPECT_THAT(ServerOptionsFrom(ParseServerFlags({metrics}), 0),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("--tls-cert")));
  EXPECT_THAT(ServerOptionsFrom(ParseServerFlags({metrics, "--insecure-on-network"}), 0),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("--token-file")));
  const auto with_tls = ServerOptionsFrom(
      ParseServerFlags({metrics, "--tls-cert=c.pem", "--tls-key=k.pem", "--tls-ca=a.pem"}), 0);
  ASSERT_THAT(with_tls, IsOk());
  EXPECT_TRUE(with_tls->metrics->credentials != nullptr);
}

// CLI11 takes it for the name of a group of options, and never returns.
TEST(ServerFlagsTest, RefusesAnEmptyArgument) {
  CLI::App app;
  ServerFlags flags;
  AddServerFlags(app, flags);
  const char* const arguments[] = {"sluice_server", "--workers=2", "", "--lease=3"};
  try {
    ParseArguments(app, 4, arguments);
    ADD_FAILURE() << "it was taken";
  } catch (const CLI::ParseError& error) {
    EXPECT_EQ(std::string(error.what()), "argument 2 is empty; is a variable not set?");
  }
}

}  // namespace
}  // namespace sluice
