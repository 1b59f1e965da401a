// The command as its user runs it, for a few seconds.

#include <fstream>
#include <iterator>
#include <string>

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
using ::testing::SizeIs;

std::string Program() { return RunfilePath("tests/soak/soak_main"); }

// How flat so short a run is says nothing.
TEST(SoakTest, WorkersComeAndGoAndAllIsMeasured) {
  const std::string json = ::testing::TempDir() + "/soak.json";
  const auto soak = Start({Program(), "--minutes=0.1", "--interval=0.5", "--workers=2",
                           "--change-every=0.5", absl::StrCat("--json=", json)});
  ASSERT_THAT(soak->Wait(), IsOkAndHolds(::testing::AnyOf(0, 1))) << soak->output();
  EXPECT_THAT(LinesWith(soak->output(), " rounds, "), SizeIs(12)) << soak->output();
  EXPECT_THAT(LinesWith(soak->output(), " in the second quarter, "), SizeIs(4));
  std::ifstream file(json);
  const std::string sheet{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(JsonAt(sheet, "run"), "soak");
  for (const char* course : {"rss_mb", "file_descriptors", "threads", "p99_of_a_round_ms"}) {
    EXPECT_EQ(JsonAt(sheet, absl::StrCat("figures.", course)), "[12]");
    EXPECT_GT(JsonNumberAt(sheet, absl::StrCat("figures.", course, ".0")), 0);
  }
  EXPECT_GE(JsonNumberAt(sheet, "figures.killed"), 1);
  EXPECT_GE(JsonNumberAt(sheet, "figures.left"), 4);
}

TEST(SoakTest, WorkersTrainExactlyBesideHostilePeers) {
  const auto soak = Start(
      {Program(), "--minutes=0.1", "--interval=1", "--workers=2", "--hostile", "--change-every=1"});
  ASSERT_THAT(soak->Wait(), IsOkAndHolds(::testing::AnyOf(0, 1))) << soak->output();
  EXPECT_THAT(LinesWith(soak->output(), " were killed, 0 attacks"), SizeIs(0));
  EXPECT_THAT(LinesWith(soak->output(), " were killed, "), SizeIs(1)) << soak->output();
}

TEST(SoakTest, ARunTooShortToJudgeByIsRefused) {
  const auto soak = Start({Program(), "--minutes=3"});
  EXPECT_THAT(soak->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(soak->output(), HasSubstr("fewer than 4 intervals of 60 s"));
}

}  // namespace
}  // namespace sluice
