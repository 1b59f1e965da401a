// tools/bench/connections at a small size: every row comes, and every round is right.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(ConnectionsTest, MeasuresEveryNumberOfConnections) {
  const auto bench = Start({RunfilePath("tools/bench/links/connections_main"), "--size=17",
                            "--flow=4000", "--rounds=1", "--passes=1"});
  ASSERT_THAT(bench->Wait(kMeasurement), IsOkAndHolds(0)) << bench->output();
  for (const char* connections : {"1", "2", "4", "8"}) {
    for (const char* carries : {"4000 MB/s", "what it can"}) {
      EXPECT_THAT(bench->output(), ContainsRegex("\\| " + std::string(carries) + " \\| " +
                                                 connections + " \\| [0-9.]+ \\|"));
    }
  }
  EXPECT_THAT(bench->output(), HasSubstr("auto"));
}

TEST(ConnectionsTest, NamesAFlagThatIsOutOfItsRange) {
  const auto bench = Start({RunfilePath("tools/bench/links/connections_main"), "--flow=0"});
  EXPECT_THAT(bench->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(bench->output(), HasSubstr("--flow"));
}

}  // namespace
}  // namespace sluice
