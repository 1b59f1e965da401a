#include "tools/bench/rounds/table.h"

#include "gtest/gtest.h"
#include "tests/bench/rounds/results.h"

namespace sluice::bench {
namespace {

std::vector<Result> Results() {
  Result sluice = MakeResult("sluice-tcp", 102, 2, {0.25, 0.2, 0.3});
  sluice.measurement.server_cpu_seconds = 0.3;
  sluice.measurement.workers_cpu_seconds = 0.6;
  sluice.measurement.server_peak_bytes = 500000000;
  sluice.measurement.worker_peak_bytes = 250000000;
  Result peer = MakeResult("gloo-allreduce", 102, 2, {0.5, 0.7});
  peer.cell.row.has_server = false;
  peer.measurement.workers_cpu_seconds = 0.5;
  peer.measurement.worker_peak_bytes = 300000000;
  return {sluice, peer, MakeResult("plain-tcp", 102, 4, {1})};
}

TEST(TableTest, HasALineForEachResult) {
  const Circumstances circumstances = {3, 61.4, 0.5, 2, 1, "cubic"};
  EXPECT_EQ(
      Table(circumstances, Results()),
      "3 passes, 61 s in all; 2 cores, load 0.5 before; 1 thread(s) of arithmetic in each peer's "
      "process; congestion control cubic\n"
      "\n"
      "                               | seconds per round                  | times        | CPU-s "
      "per "
      "round   | peak MB\n"
      "   MB workers row              |   median      min–max     rounds | / sluice-tcp |   "
      "server+workers  | server/worker\n"
      "102.0       2 sluice-tcp       |  0.25000  0.20000– 0.30000      3 |         1.00 |  "
      "0.10000+ "
      "0.20000 |   500/  250\n"
      "102.0       2 gloo-allreduce   |  0.60000  0.50000– 0.70000      2 |         2.40 |        "
      "-+ "
      "0.25000 |     -/  300\n"
      "102.0       4 plain-tcp        |  1.00000  1.00000– 1.00000      1 |            - |  "
      "0.00000+ "
      "0.00000 |     0/    0\n");
}

TEST(TableTest, HasTheRoundsInJson) {
  const std::string lines = JsonLines(Results());
  EXPECT_EQ(lines.substr(0, lines.find('\n')),
            R"({"row":"sluice-tcp","bytes":102000000,"workers":2,)"
            R"("seconds":{"median":0.250000,"min":0.200000,"max":0.300000,)"
            R"("rounds":[0.250000,0.200000,0.300000]},)"
            R"("cpu_seconds":{"server":0.100000,"workers":0.200000},)"
            R"("peak_bytes":{"server":500000000,"worker":250000000}})");
}

TEST(SpreadTest, HasTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(SpreadOf({7}).median, 7);
  EXPECT_EQ(SpreadOf({9, 1, 4}).median, 4);
  EXPECT_EQ(SpreadOf({9, 1, 4, 2}).median, 3);
  EXPECT_EQ(SpreadOf({9, 1, 4}).min, 1);
  EXPECT_EQ(SpreadOf({9, 1, 4}).max, 9);
}

}  // namespace
}  // namespace sluice::bench
