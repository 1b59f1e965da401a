#include "tools/bench/crowds/crowd_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CrowdResult ResultOf(uint32_t workers, double server_cpu_seconds) {
  CrowdResult result;
  result.of = {4000, workers, "sync"};
  result.join_seconds = 0.25;
  result.idle = {50000, 1.5, 20e-6};
  result.rounds = 10000;
  result.seconds = 5;
  result.server_cpu_seconds = server_cpu_seconds;
  result.workers_cpu_seconds = 2;
  result.median_seconds = 0.01;
  result.p99_seconds = 0.03;
  result.server_peak_bytes = 42'000'000;
  return result;
}

TEST(CrowdTableTest, ComparesWithTheFirstNumberOfWorkers) {
  const std::string table = CrowdTable({ResultOf(10, 1), ResultOf(100, 2.5)});
  EXPECT_THAT(table, HasSubstr("     4.0      10 sync    |    100.0    1.00    200.0 |     2000    "
                               "10.000    30.000    3.0 |   0.25 |   50.0     1.500   20.00 |   "
                               "42.0 | right\n"));
  EXPECT_THAT(table, HasSubstr("     4.0     100 sync    |    250.0    2.50    200.0 |"));
  EXPECT_THAT(table, Not(HasSubstr("killed")));
}

TEST(CrowdTableTest, TellsWhatBecameOfTheOthersAndWhatIsWrong) {
  CrowdResult result = ResultOf(100, 1);
  result.kill = KillCost{30, 10.1, 40, 1500, 7};
  result.wrong = "the server counted 8 steps, expected 7";
  EXPECT_THAT(CrowdTable({result}),
              HasSubstr("| WRONG\n"
                        "      30 killed at once: all evicted after 10.1 s; the others made 40 "
                        "rounds/s until then and 1500 afterwards, each at least 7\n"
                        "      wrong: the server counted 8 steps, expected 7\n"));
  EXPECT_THAT(CrowdJsonLines({result}),
              HasSubstr(R"("kill":{"killed":30,"eviction_seconds":10.100,"rate_before":40.000,)"
                        R"("rate_after":1500.000,"least_after":7},"right":false})"));
}

TEST(CrowdTableTest, HasALineOfJsonForEachResult) {
  EXPECT_EQ(CrowdJsonLines({ResultOf(10, 1)}),
            R"({"bytes":4000,"workers":10,"mode":"sync","rounds":10000,"seconds":5.000000,)"
            R"("cpu_microseconds":{"server":100.000,"worker":200.000},)"
            R"("round_seconds":{"median":0.010000,"p99":0.030000},"join_seconds":0.250000,)"
            R"("idle_worker":{"bytes":50000,"wakeups_per_second":1.5000,)"
            R"("cpu_microseconds_per_second":20.000},)"
            R"("server_peak_bytes":42000000,"kill":null,"right":true})"
            "\n");
}

}  // namespace
}  // namespace sluice::bench
