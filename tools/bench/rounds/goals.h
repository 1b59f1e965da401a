// What Sluice is meant to reach, as ratios within one run.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

// A cell by its names.
struct CellName {
  std::string row;
  double megabytes = 0;
  uint32_t workers = 1;
};

// That ours is at least so many times as fast: weight · seconds of theirs / seconds of ours.
struct Goal {
  CellName ours;
  CellName theirs;
  double at_least = 1;
  double weight = 1;  // gradients of one of our rounds for each of theirs
};

// Those of Sluice over sockets, then those through shared memory.
std::vector<Goal> AllGoals();

struct Verdict {
  std::string text;  // a heading, and a line for each goal that `results` could decide
  uint32_t missed = 0;
};

// By the medians of `results`. A goal of a cell that was not measured is left out.
Verdict Judge(const std::vector<Goal>& goals, const std::vector<Result>& results);

// How many float32 numbers a vector of that many million bytes has, rounded up.
uint64_t ElementsOf(double megabytes);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_GOALS_H_
