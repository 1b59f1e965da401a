// How a round's cost grows, for people.

#ifndef SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_
#define SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"
#include "tools/bench/scaling/capacity.h"

namespace sluice::bench {

// A line for each result: seconds, throughput, and what a gradient costs the server.
std::string ScaleTable(const std::vector<Result>& results);

// A line for each size that has results with different numbers of workers: the line fitted to the
// medians.
std::string FittedLines(const std::vector<Result>& results);

// What a gradient of each size costs the server, in the mean over all rounds of that size; sizes
// ascending.
std::vector<GradientCost> CostsOf(const std::vector<Result>& results);

// For each size and number of servers a line: what servers of the kind of `site` can do.
std::string Estimates(const std::vector<GradientCost>& costs, const Site& site,
                      const std::vector<uint32_t>& servers);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SCALING_SCALE_TABLE_H_
