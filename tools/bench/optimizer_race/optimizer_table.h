// What a race of optimizers came to, for people.

#ifndef SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_
#define SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

// The steps of one optimizer, in pairs: one of ours, then one of theirs.
struct OptimizerRace {
  std::string name;
  double at_least = 0;         // the goal for the ratio; 0: none
  std::vector<double> ours;    // seconds
  std::vector<double> theirs;  // as many, or none if torch::optim lacks the optimizer
};

// The median over the pairs of theirs / ours: how many times as fast ours is.
double RatioOf(const OptimizerRace& race);

// Two lines of headings, and one for each race: medians, least and most, the ratio and its goal.
std::string OptimizerTable(const std::vector<OptimizerRace>& races);

// Races whose goal was missed.
uint32_t CountMissed(const std::vector<OptimizerRace>& races);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_TABLE_H_
