#include "tests/testing/process/record_sheet.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(RecordSheetTest, SaysWhatWasRunWhereAndWithWhatSeed) {
  const RecordSheet sheet("kills", 7);
  const std::string json = sheet.ToJson();
  EXPECT_EQ(JsonAt(json, "run"), "kills");
  EXPECT_EQ(JsonNumberAt(json, "seed"), 7);
  EXPECT_THAT(JsonAt(json, "command"), HasSubstr("record_sheet_test"));
  EXPECT_THAT(JsonAt(json, "date"), ::testing::ContainsRegex("^20[0-9-]+T[0-9:]+Z$"));
  EXPECT_GE(JsonNumberAt(json, "machine.cores"), 1);
  EXPECT_GE(JsonNumberAt(json, "machine.memory_bytes"), 1);
}

TEST(RecordSheetTest, HoldsFiguresOfEachKind) {
  RecordSheet sheet("kills");
  sheet.Count("kills", 200);
  sheet.Figure("share", 0.25);
  sheet.Text("verdict", "flat");
  sheet.Series("rss_bytes", {1, 2, 3});
  sheet.Counts("by_point", {{"journal.sync.after", 20}});
  const std::string json = sheet.ToJson();
  EXPECT_EQ(JsonNumberAt(json, "figures.kills"), 200);
  EXPECT_EQ(JsonNumberAt(json, "figures.share"), 0.25);
  EXPECT_EQ(JsonAt(json, "figures.verdict"), "flat");
  EXPECT_EQ(JsonAt(json, "figures.rss_bytes"), "[3]");
  EXPECT_THAT(json, HasSubstr("\"journal.sync.after\": 20"));
}

TEST(RecordSheetTest, SumsTimesUp) {
  std::vector<absl::Duration> times;
  for (int i = 1; i <= 100; ++i) times.push_back(absl::Seconds(i));
  RecordSheet sheet("kills");
  sheet.Times("recovery_s", times);
  sheet.Times("none_s", {});
  const std::string json = sheet.ToJson();
  EXPECT_EQ(JsonNumberAt(json, "figures.recovery_s.count"), 100);
  EXPECT_EQ(JsonNumberAt(json, "figures.recovery_s.p50"), 51);
  EXPECT_EQ(JsonNumberAt(json, "figures.recovery_s.p99"), 100);
  EXPECT_EQ(JsonNumberAt(json, "figures.recovery_s.max"), 100);
  EXPECT_EQ(JsonAt(json, "figures.none_s.p50"), "absent");
}

TEST(RecordSheetTest, IsWrittenWhereTheEnvironmentSays) {
  const std::string directory = ::testing::TempDir() + "/sheets/new";
  ASSERT_EQ(setenv("SLUICE_RECORD", directory.c_str(), 1), 0);
  const RecordSheet sheet("kills", 7);
  EXPECT_THAT(sheet.Write(), IsOk());
  EXPECT_EQ(JsonAt(Contents(directory + "/kills.json"), "run"), "kills");
}

TEST(RecordSheetTest, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(RecordSheet("kills").WriteTo("/nowhere/kills.json"),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("/nowhere/kills.json")));
}

}  // namespace
}  // namespace sluice
