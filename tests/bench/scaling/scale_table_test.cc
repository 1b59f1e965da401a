#include "tools/bench/scaling/scale_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/rounds/results.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

// 0.1 s and 0.2 s for each worker; 0.05 CPU-seconds of the server for each gradient.
std::vector<Result> Results() {
  std::vector<Result> results = {MakeResult("sluice", 100, 1, {0.3, 0.2, 0.4}),
                                 MakeResult("sluice", 100, 3, {0.7, 0.7, 0.7}),
                                 MakeResult("sluice", 10, 2, {0.1})};
  results[0].measurement.server_cpu_seconds = 3 * 0.05;
  results[1].measurement.server_cpu_seconds = 9 * 0.05;
  results[2].measurement.server_cpu_seconds = 0.01;
  results[0].measurement.server_peak_bytes = 900000000;
  results[0].measurement.worker_peak_bytes = 250000000;
  return results;
}

TEST(ScaleTableTest, HasALineForEachResult) {
  EXPECT_THAT(
      ScaleTable(Results()),
      HasSubstr("100.0       1 |  0.30000  0.20000– 0.40000      3 |   0.67 |   0.050000 |  "
                "  900/   250\n"));
}

TEST(FittedLinesTest, HaveALineForEachSizeWithSeveralNumbersOfWorkers) {
  EXPECT_EQ(FittedLines(Results()),
            "fitted to the medians: seconds per round = a + b × workers\n"
            "100.0 MB: a =  0.100000, b =  0.200000, R² = 1.000, from 2 cells\n");
}

TEST(CostsTest, AreTheMeanOverAllGradientsOfASize) {
  const std::vector<GradientCost> costs = CostsOf(Results());
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_DOUBLE_EQ(costs[0].bytes, 10e6);
  EXPECT_DOUBLE_EQ(costs[0].cpu_seconds, 0.005);
  EXPECT_DOUBLE_EQ(costs[1].bytes, 100e6);
  EXPECT_DOUBLE_EQ(costs[1].cpu_seconds, 0.05);
}

// The site of capacity_test.cc.
TEST(EstimatesTest, HaveALineForEachSizeAndNumberOfServers) {
  const std::string text = Estimates({{0.05, 100e6}}, {1, 4, 1e9, 0.9}, {1, 8});
  EXPECT_THAT(text, HasSubstr("servers of 4 cores like these and 8 Gbit/s each way, 0.9 s of"));
  EXPECT_THAT(text,
              HasSubstr("100.0       1 |       80.0       10.0 network |        9.0 |          "
                        "0          4\n"));
  EXPECT_THAT(text,
              HasSubstr("100.0       8 |      640.0       80.0 network |       72.0 |          "
                        "0         36\n"));
}

TEST(SyncRoundsTest, HaveALineForEachNumberOfWorkersAndServers) {
  const Site site = {1, 4, 1e9, 0.9, 100e9};
  const std::string text = SyncRounds({{0.05, 100e6}}, site, {1, 4}, {2});
  EXPECT_THAT(text,
              HasSubstr("100.0       2       1 |           0.40000 |                   5.0\n"));
  EXPECT_THAT(text,
              HasSubstr("100.0       2       4 |           0.10000 |                  20.0\n"));
}

}  // namespace
}  // namespace sluice::bench
