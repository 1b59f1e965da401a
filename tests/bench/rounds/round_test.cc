// The benchmark itself, small: that every participant starts, comes to the right parameters and
// ends.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// All that need nothing beyond what Sluice is built from.
const std::vector<std::string> kRows = {"sluice-unix",   "sluice-tcp",   "sluice-tcp-tls",
                                        "plain-unix",    "plain-tcp",    "plain-sgd-unix",
                                        "plain-sgd-tcp", "mpi-sendrecv", "mpi-allreduce"};

// Those that need Python's packages, or a kernel that lets a user choose TCP's congestion control.
const std::vector<std::string> kOptionalRows = {
    "python-unix", "python-shm",   "plain-tcp-cubic",  "plain-tcp-bbr", "rpc-shm",
    "rpc-tcp",     "mpi4py-blosc", "mpi4py-blosc-f32", "gloo-allreduce"};

Words RoundOf(const std::vector<std::string>& rows, const std::string& workers) {
  return {RunfilePath("tools/bench/rounds/round_main"),
          "--sizes=0.02",
          "--rounds=1",
          "--passes=1",
          "--workers=" + workers,
          "--rows=" + absl::StrJoin(rows, ",")};
}

TEST(RoundTest, MeasuresEveryRowThatNeedsNoMore) {
  const auto round = Start(RoundOf(kRows, "1,2"));
  EXPECT_THAT(round->Wait(kMeasurement), IsOkAndHolds(0)) << round->output();
  for (const std::string& row : kRows) {
    for (const char* workers : {"1 ", "2 "}) {
      EXPECT_THAT(LinesWith(round->output(), absl::StrCat(" ", workers, row, " ")), SizeIs(1))
          << round->output();
    }
  }
}

TEST(RoundTest, MeasuresOrSkipsTheOthers) {
  const auto round = Start(RoundOf(kOptionalRows, "2"));
  EXPECT_THAT(round->Wait(kMeasurement), IsOkAndHolds(0)) << round->output();
  for (const std::string& row : kOptionalRows) {
    EXPECT_THAT(LinesWith(round->output(), absl::StrCat(" ", row, " ")), SizeIs(1))
        << round->output();
  }
}

TEST(RoundTest, RefusesARowThatIsNotThere) {
  const auto round = Start(RoundOf({"sluice-carrier-pigeon"}, "1"));
  EXPECT_THAT(round->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(round->output(), HasSubstr("expected some of sluice-unix,sluice-tcp"));
}

TEST(ScaleTest, MeasuresFitsAndEstimates) {
  const auto scale = Start({RunfilePath("tools/bench/scaling/scale_main"), "--sizes=0.02",
                            "--workers=1,2", "--rounds=1", "--passes=1", "--servers=1,2"});
  EXPECT_THAT(scale->Wait(kMeasurement), IsOkAndHolds(0)) << scale->output();
  EXPECT_THAT(LinesWith(scale->output(), "from 2 cells"), SizeIs(1)) << scale->output();
  // Two measured cells, two numbers of servers, and the rounds of both with 1 and 2 workers.
  EXPECT_THAT(LinesWith(scale->output(), "  0.0  "), SizeIs(2 + 2 + 4)) << scale->output();
}

}  // namespace
}  // namespace sluice
