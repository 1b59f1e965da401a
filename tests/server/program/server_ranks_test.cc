#include "server/program/server_ranks.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

// One note for each letter, by rank. The letter names the node of the rank.
std::vector<RankNote> RanksOn(absl::string_view nodes) {
  std::vector<RankNote> notes;
  for (const char node : nodes) notes.push_back({static_cast<int>(nodes.find(node))});
  return notes;
}

absl::Status NamesOf(const std::vector<std::string>& names, const std::vector<uint32_t>& servers) {
  std::vector<RankNote> notes(names.size());
  for (size_t rank = 0; rank < names.size(); ++rank) notes[rank].name = names[rank];
  return CheckNames(notes, servers);
}

TEST(RankNamesTest, AreThoseOfWorkersAndDiffer) {
  EXPECT_THAT(NamesOf({"", "", ""}, {0}), IsOk());
  EXPECT_THAT(NamesOf({"x", "x"}, {0}), IsOk());  // rank 0 is no worker
  EXPECT_THAT(NamesOf({"x", "x", "y", "x", "z"}, {0, 3}), IsOk());
  EXPECT_THAT(NamesOf({"x", "x", "x"}, {0}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("--name: ranks 1 and 2 are both named \"x\"; leave --name out")));
  EXPECT_THAT(NamesOf({"x", "y", "x"}, {}),  // the server runs elsewhere
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("ranks 0 and 2")));
}

TEST(RankNamesTest, DifferFromTheNamesOfThoseThatWereGivenNone) {
  EXPECT_THAT(NamesOf({"", "worker-1", ""}, {0}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("ranks 1 and 2 are both named \"worker-1\"")));
  EXPECT_THAT(NamesOf({"", "worker-0", ""}, {0}), IsOk());
}

TEST(ServerRanksTest, AreTheFirstRanksOfOneNode) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaaa"), 1), ElementsAre(0));
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaaa"), 3), ElementsAre(0, 1, 2));
}

TEST(ServerRanksTest, ASingleServerIsRankZero) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("aabbcc"), 1), ElementsAre(0));
  EXPECT_THAT(ChooseServerRanks(RanksOn("abcabc"), 1), ElementsAre(0));
}

TEST(ServerRanksTest, AreOnePerNode) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabbbbcccc"), 2), ElementsAre(0, 4));
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabbbbcccc"), 3), ElementsAre(0, 4, 8));
}

TEST(ServerRanksTest, AreTheFirstRanksIfMpirunMapsByNode) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("abcabcabc"), 2), ElementsAre(0, 1));
  EXPECT_THAT(ChooseServerRanks(RanksOn("abcabcabc"), 5), ElementsAre(0, 1, 2, 3, 4));
}

TEST(ServerRanksTest, BeginAnewAtTheFirstNodeIfThereAreMoreServersThanNodes) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabbbbcccc"), 4), ElementsAre(0, 1, 4, 8));
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabbbbcccc"), 7), ElementsAre(0, 1, 2, 4, 5, 8, 9));
}

TEST(ServerRanksTest, PassOverANodeThatHasNoRankLeft) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabcc"), 3), ElementsAre(0, 4, 5));
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabcc"), 5), ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(ChooseServerRanks(RanksOn("aaaabcc"), 6), ElementsAre(0, 1, 2, 4, 5, 6));
}

TEST(ServerRanksTest, FollowTheOrderOfTheNodesLowestRanks) {
  EXPECT_THAT(ChooseServerRanks(RanksOn("abbacab"), 2), ElementsAre(0, 1));
  EXPECT_THAT(ChooseServerRanks(RanksOn("abbacab"), 3), ElementsAre(0, 1, 4));
  EXPECT_THAT(ChooseServerRanks(RanksOn("abbacab"), 4), ElementsAre(0, 1, 3, 4));
}

TEST(ServerRanksTest, AreTheFirstRanksIfTheUserHasPlacedAProgramThatOnlyServes) {
  std::vector<RankNote> notes = RanksOn("aaabbb");
  notes[0].only_serves = notes[1].only_serves = true;
  EXPECT_THAT(ChooseServerRanks(notes, 2), ElementsAre(0, 1));
  EXPECT_THAT(ChooseServerRanks(notes, 3), ElementsAre(0, 1, 2));
}

TEST(ServerRanksTest, HaveAnIndexEachAndSoHaveTheOthers) {
  const std::vector<uint32_t> servers = {0, 4, 8};
  EXPECT_THAT(ServerIndex(servers, 0), Optional(Eq(0U)));
  EXPECT_THAT(ServerIndex(servers, 8), Optional(Eq(2U)));
  EXPECT_FALSE(ServerIndex(servers, 3).has_value());
  EXPECT_FALSE(ServerIndex(servers, 9).has_value());
  EXPECT_FALSE(WorkerIndex(servers, 4).has_value());
  std::vector<uint32_t> workers;
  for (uint32_t rank = 0; rank < 12; ++rank) {
    const auto index = WorkerIndex(servers, rank);
    if (index.has_value()) workers.push_back(*index);
  }
  EXPECT_THAT(workers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(WorkerIndex({}, 5), Optional(Eq(5U)));
}

}  // namespace
}  // namespace sluice
