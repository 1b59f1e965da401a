// Chooses the cells of a grid of sizes and workers that fit into the memory of this machine.

#ifndef SLUICE_TOOLS_BENCH_SCALING_SCALE_PLAN_H_
#define SLUICE_TOOLS_BENCH_SCALING_SCALE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

// Estimates the memory of a cell of Sluice: 5 vectors plus one per worker in the server, more than
// it needs, 3 in each worker, and the programs themselves.
uint64_t NeededBytes(uint64_t elements, uint32_t workers);

struct ScalePlan {
  std::vector<Cell> cells;           // sorted by size, then by workers
  std::vector<std::string> skipped;  // a line for each size with cells that do not fit
};

ScalePlan PlanScale(const Row& row, const std::vector<double>& megabytes,
                    const std::vector<uint32_t>& workers, uint64_t memory_bytes);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SCALING_SCALE_PLAN_H_
