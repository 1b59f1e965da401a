// Prints how the cost of a round grows with size and workers.

#ifndef SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_
#define SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"
#include "tools/bench/scaling/capacity.h"

namespace sluice::bench {

// Returns a line for each result: seconds, throughput, and what a gradient costs the server.
std::string ScaleTable(const std::vector<Result>& results);

// Returns, for each size with different numbers of workers, the straight line fitted to the
// medians.
std::string FittedLines(const std::vector<Result>& results);

// Returns what a gradient of each size costs the server, averaged over all rounds of that size. The
// sizes ascend.
std::vector<GradientCost> CostsOf(const std::vector<Result>& results);

// Returns a line for each size and number of servers: what servers like those of `site` can do.
std::string Estimates(const std::vector<GradientCost>& costs, const Site& site,
                      const std::vector<uint32_t>& servers);

// Returns a line for each size, number of workers and number of servers: how long a round takes in
// sync mode, and how many gradients are summed in a second while nobody computes.
std::string SyncRounds(const std::vector<GradientCost>& costs, const Site& site,
                       const std::vector<uint32_t>& servers, const std::vector<uint32_t>& workers);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_
