// The goals of the round benchmark: ratios of medians within one run.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

// Identifies a cell.
struct CellName {
  std::string row;
  double megabytes = 0;
  uint32_t workers = 1;
};

// A goal: weight · seconds of `theirs` / seconds of `ours` is at least `at_least`.
struct Goal {
  CellName ours;
  CellName theirs;
  double at_least = 1;
  double weight = 1;  // gradients of one of our rounds / of one of theirs
};

// Returns the goals of Sluice over sockets, then those through shared memory.
std::vector<Goal> AllGoals();

struct GoalVerdict {
  std::string text;  // a heading, and a line for each goal whose cells were measured
  uint32_t missed = 0;
};

// Compares the medians of `results` with the goals.
GoalVerdict Judge(const std::vector<Goal>& goals, const std::vector<Result>& results);

// Returns how many float32 numbers a vector of `megabytes` million bytes has, rounded up.
uint64_t ElementsOf(double megabytes);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_
