#include "server/program/servers_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/launch/rank_note.h"
#include "common/security/certificate_facts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/program/server_flags.h"
#include "tests/testing/json.h"
#include "tests/testing/server/server_flags.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kThree[] = "--servers=host1:7070,[::1]:7070,unix:/run/third";

auto IsWrong(const std::string& why) {
  return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

ServersFlags Parse(const std::vector<std::string>& arguments) {
  return ParseServerFlags(arguments).servers;
}

std::vector<std::string> Texts(const ServerList& list) {
  std::vector<std::string> texts;
  for (const Address& address : list.addresses) texts.push_back(address.ToString());
  return texts;
}

// ---- Under mpirun ----

TEST(ServersFlagsTest, LaunchesOneServerUnlessToldOtherwise) {
  EXPECT_THAT(LaunchedServers(Parse({})), IsOkAndHolds(1U));
  EXPECT_THAT(LaunchedServers(Parse({"--servers=3"})), IsOkAndHolds(3U));
  EXPECT_THAT(LaunchedServers(Parse({"--servers=256"})), IsOkAndHolds(256U));
}

TEST(ServersFlagsTest, RefusesWhatIsNoNumberOfLaunchedServers) {
  for (const char* number : {"0", "257", "-1", "many", "a:1,b:2"}) {
    EXPECT_THAT(LaunchedServers(Parse({absl::StrCat("--servers=", number)})),
                IsWrong(absl::StrCat("--servers=", number,
                                     ": under mpirun it is the number of ranks that serve, 1 to "
                                     "256")))
        << number;
  }
  EXPECT_THAT(LaunchedServers(Parse({"--servers=2", "--index=1"})),
              IsWrong("--index=1 is for servers that are started by hand"));
}

TEST(ServersFlagsTest, LeavesARankToBeAWorker) {
  EXPECT_THAT(Launch({"--servers=3"}, RanksOnOneNode(3)),
              IsWrong("3 ranks were started and 3 are to serve, and no rank is left to be a "
                      "worker; start at least 4 ranks"));
  EXPECT_THAT(Launch({"--servers=3"}, RanksOnOneNode(2)), IsWrong("start at least 4 ranks"));
}

TEST(ServersFlagsTest, TellsTheOtherRanksWhichOfThemServe) {
  const auto alone = Launch({}, RanksOnOneNode(5));
  ASSERT_THAT(alone, IsOk());
  EXPECT_THAT(alone->identity.ticket.server_ranks, ElementsAre(0));
  const auto three = Launch({"--servers=3"}, RanksOnOneNode(5));
  ASSERT_THAT(three, IsOk());
  EXPECT_THAT(three->identity.ticket.server_ranks, ElementsAre(0, 1, 2));
}

LaunchBrief BriefOf(const std::vector<RankNote>& notes) {
  LaunchBrief brief = {RanksOnManyNodes(static_cast<int>(notes.size()))};
  for (const RankNote& note : notes) brief.notes.push_back(EncodeNote(note));
  return brief;
}

// Only ranks that serve can show that they are servers, at the host of each of them.
TEST(ServersFlagsTest, GivesTheServersACertificateAndTheWorkersAnother) {
  const LaunchBrief brief = BriefOf({{0, false, {"node0"}},
                                     {0, false, {"node0"}},
                                     {2, false, {"node2", "10.0.0.2"}},
                                     {2, false, {"another2"}},
                                     {4, false, {"node4"}},
                                     {5, false, {"node5"}}});
  const auto launched =
      StartLaunchedServer(ParseServerFlags({"--servers=3", "--interface=lo"}), brief);
  ASSERT_THAT(launched, IsOk());
  const MpiBlobs blobs = BlobsOf(launched->identity);
  EXPECT_THAT(blobs.chosen, ElementsAre(2, 4));
  const JobTicket workers = DecodeTicket(blobs.for_all).value();
  const JobTicket replicas = DecodeTicket(blobs.for_chosen).value();
  EXPECT_EQ(replicas.address, workers.address);
  EXPECT_EQ(replicas.token, workers.token);
  EXPECT_EQ(replicas.credentials.key, launched->identity.credentials.key);
  EXPECT_NE(workers.credentials.key, replicas.credentials.key);
  const auto of_servers = FactsOf(replicas.credentials.certificate);
  const auto of_workers = FactsOf(workers.credentials.certificate);
  ASSERT_THAT(of_servers, IsOk());
  ASSERT_THAT(of_workers, IsOk());
  EXPECT_THAT(of_servers->hosts, AllOf(Contains("node2"), Contains("10.0.0.2"), Contains("node4"),
                                       Not(Contains("another2")), Not(Contains("node5"))));
  EXPECT_EQ(of_servers->roles, Roles(Role::kServer));
  EXPECT_TRUE(of_servers->may_serve && of_servers->may_call);
  EXPECT_EQ(of_workers->roles, Roles(Role::kWorker));
}

TEST(ServersFlagsTest, RefusesNotesOfAnotherVersion) {
  LaunchBrief brief = {RanksOnOneNode(2)};
  brief.notes = {"\xff", "\xff"};
  EXPECT_THAT(StartLaunchedServer(ParseServerFlags({}), brief),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("no note to rank 0")));
}

// ---- By hand ----

TEST(ServersFlagsTest, IsAloneWithoutAList) {
  const auto list = ListedServers(Parse({}), "host1:7070");
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(list->addresses, IsEmpty());
  EXPECT_EQ(list->size(), 1U);
}

TEST(ServersFlagsTest, ListsTheServersInTheOrderOfTheirIndices) {
  for (const uint32_t index : {0U, 1U, 2U}) {
    const auto list = ListedServers(Parse({kThree, absl::StrCat("--index=", index)}), "");
    ASSERT_THAT(list, IsOk());
    EXPECT_THAT(Texts(*list), ElementsAre("host1:7070", "[::1]:7070", "unix:/run/third"));
    EXPECT_EQ(list->index, index);
  }
}

TEST(ServersFlagsTest, RefusesWrongLists) {
  const auto refusal = [](const std::string& list) {
    return ListedServers(Parse({"--servers=" + list, "--index=0"}), "").status();
  };
  EXPECT_THAT(refusal("3"), IsWrong("--servers=3: without mpirun, expected the addresses of all "
                                    "servers of the job: --servers=host1:7070,host2:7070"));
  EXPECT_THAT(refusal("a:1"), IsWrong("expected 2 to 256 addresses, found 1; a server that is the "
                                      "only one has --listen in place of it"));
  EXPECT_THAT(refusal("a:1,b:2,a:1"), IsWrong("--servers=a:1,b:2,a:1: a:1 is there twice"));
  EXPECT_THAT(refusal("a:1,b:0"), IsWrong("b:0 means any free port"));
  EXPECT_THAT(refusal("0.0.0.0:1,b:2"), IsWrong("0.0.0.0:1 means every address of a machine"));
  EXPECT_THAT(refusal("[::]:1,b:2"), IsWrong("[::]:1 means every address of a machine"));
  EXPECT_THAT(refusal("a:1,"), IsWrong("address \"\" has no port"));
  EXPECT_THAT(refusal("a:1,b"), IsWrong("address \"b\" has no port"));
}

TEST(ServersFlagsTest, RefusesAnIndexThatIsNotInTheList) {
  EXPECT_THAT(ListedServers(Parse({kThree, "--index=3"}), ""),
              IsWrong("--index=3, expected 0 to 2: which address of --servers is this server's"));
  EXPECT_THAT(ListedServers(Parse({kThree}), ""), IsWrong("--index=(absent), expected 0 to 2"));
  EXPECT_THAT(ListedServers(Parse({"--index=1"}), "a:1"),
              IsWrong("--index=1 has no list of servers; give --servers="));
}

TEST(ServersFlagsTest, RefusesASecondAddressToListenOn) {
  EXPECT_THAT(
      StartStandaloneServer(ParseServerFlags({kThree, "--index=0", "--listen=127.0.0.1:0"})),
      IsWrong("--listen and --servers are given; leave --listen out"));
}

TEST(ServersFlagsTest, AsksForCertificatesOnTheNetworkAsWithOneServer) {
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({kThree, "--index=0"})),
              IsWrong("in plaintext at host1:7070 the network could read"));
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({kThree, "--index=1"})),
              IsWrong("in plaintext at host1:7070 the network could read"));
}

TEST(ServersFlagsTest, PrintsTheListOfServers) {
  const auto config = DescribeConfig(ParseServerFlags({kThree, "--index=2"}));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(JsonAt(*config, "servers.1"), "[::1]:7070");
  EXPECT_EQ(JsonAt(*config, "index"), "2");
  EXPECT_EQ(JsonAt(*config, "listen"), "unix:/run/third");
}

TEST(ServersFlagsTest, TakeAModelOfWhichEachHasMemoryForItsPart) {
  const auto parameters = [](const std::vector<std::string>& flags) {
    const auto config = DescribeConfig(ParseServerFlags(flags));
    return config.ok() ? std::stoull(JsonAt(*config, "limits.parameters")) : 0;
  };
  EXPECT_EQ(parameters({kThree, "--index=0"}), 0u) << "it needs certificates";
  const auto one = parameters({"--listen=unix:/run/first"});
  EXPECT_GT(one, 0u);
  EXPECT_EQ(parameters({kThree, "--index=2"}), std::min<uint64_t>(3 * one, Layout::kMaxElements));
}

// ---- Options of several servers ----

TEST(ServersFlagsTest, MayHaveInconsistentReads) {
  const auto options =
      ServerOptionsFrom(ParseServerFlags({"--inconsistent-reads", "--mode=async"}), 4, 3);
  ASSERT_THAT(options, IsOk());
  EXPECT_TRUE(options->shard.consistency.inconsistent_reads);
}

TEST(ServersFlagsTest, WaitLongerForAServerThatMayBeStartedAgain) {
  const auto lease = [](const std::vector<std::string>& given) {
    return ServerOptionsFrom(ParseServerFlags(given), 4, 3)->server_lease;
  };
  EXPECT_EQ(lease({"--lease=7"}), absl::Seconds(7));
  EXPECT_EQ(lease({"--lease=7", "--checkpoint-dir=/c"}), absl::Seconds(60));
  EXPECT_EQ(lease({"--lease=7", "--checkpoint-dir=/c", "--server-lease=9"}), absl::Seconds(9));
}

TEST(ServersFlagsTest, EveryServerSharesMemoryUnlessItIsTurnedOff) {
  for (const uint32_t servers : {1, 2}) {
    const auto snapshots = [servers](const std::vector<std::string>& words) {
      const auto options = ServerOptionsFrom(ParseServerFlags(words), 2, servers);
      EXPECT_EQ(ReplicaOptionsFrom(*options).snapshots, options->shard.snapshots);
      return options->shard.snapshots;
    };
    EXPECT_EQ(snapshots({}), SnapshotMemory::kShared);
    EXPECT_EQ(snapshots({"--shared-memory=off"}), SnapshotMemory::kPrivate);
  }
}

}  // namespace
}  // namespace sluice
