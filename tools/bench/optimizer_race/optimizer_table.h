// Prints the results of a race of optimizers as a table.

#ifndef SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_
#define SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_

#include <string>
#include <vector>

namespace sluice::bench {

// The times of one optimizer's steps, in pairs: first Sluice's, then torch::optim's.
struct OptimizerRace {
  std::string name;
  std::vector<double> ours;    // seconds
  std::vector<double> theirs;  // as many; empty if torch::optim lacks the optimizer
};

// Two lines of headings, then one line for each race: median, minimum and maximum of both sides and
// of the ratio theirs / ours of the pairs.
std::string OptimizerTable(const std::vector<OptimizerRace>& races);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_
