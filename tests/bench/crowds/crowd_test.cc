// tools/bench/crowd at a small size: the counters of the server and of the workers agree.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::SizeIs;

Words Crowd(const Words& flags) {
  const std::string root = RunfilePath("");
  Words words = {RunfilePath("tools/bench/crowds/crowd_main"),
                 "--root=" + root,
                 "--workers=12",
                 "--processes=2",
                 "--warm-up=0",
                 "--idle=0.1"};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(CrowdTest, CountsWhatTheServerCounts) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/crowd.json");
  const auto crowd =
      Start(Crowd({"--modes=bare,sync,async", "--seconds=1", "--sizes=4KB", "--json=" + path}));
  ASSERT_THAT(crowd->Wait(kMeasurement), IsOkAndHolds(0)) << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "      12 bare    |"), SizeIs(1)) << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "      12 sync    |"), SizeIs(1)) << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "      12 async   |"), SizeIs(1)) << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "| right"), SizeIs(3)) << crowd->output();
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_THAT(lines, SizeIs(3));
  for (const std::string& line : lines) {
    EXPECT_EQ(JsonAt(line, "bytes"), "4000");
    EXPECT_EQ(JsonAt(line, "workers"), "12");
    EXPECT_EQ(JsonAt(line, "right"), "true");
    EXPECT_THAT(JsonAt(line, "rounds"), Ne("0"));
  }
}

TEST(CrowdTest, GoesOnWithoutTheWorkersThatItKills) {
  const auto crowd = Start(Crowd(
      {"--modes=sync,ssp", "--kill=4", "--lease=10", "--seconds=0.5", "--tcp", "--sizes=240KB"}));
  ASSERT_THAT(crowd->Wait(kMeasurement), IsOkAndHolds(0)) << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "      4 killed at once: all evicted after "), SizeIs(2))
      << crowd->output();
  EXPECT_THAT(LinesWith(crowd->output(), "| right"), SizeIs(2)) << crowd->output();
}

TEST(CrowdTest, RefusesToKillAll) {
  const auto crowd = Start(Crowd({"--kill=12"}));
  EXPECT_THAT(crowd->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(crowd->output(), HasSubstr("--kill is 12, expected less than the 12 of --workers"));
}

TEST(CrowdTest, RefusesForBareCallsWhatOnlySluiceHas) {
  for (const char* flag : {"--kill=1", "--shared-memory", "--two-calls"}) {
    const auto crowd = Start(Crowd({"--modes=bare,sync", flag}));
    EXPECT_THAT(crowd->Wait(), IsOkAndHolds(2));
    EXPECT_THAT(crowd->output(), HasSubstr("give --modes without bare"));
  }
}

}  // namespace
}  // namespace sluice
