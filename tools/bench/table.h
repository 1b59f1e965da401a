// The results for people, and for programs.

#ifndef SLUICE_TOOLS_BENCH_TABLE_H_
#define SLUICE_TOOLS_BENCH_TABLE_H_

#include <string>
#include <vector>

#include "tools/bench/cell.h"

namespace sluice::bench {

// The same bytes, workers and kind of socket, on both sides. Each measurement has at least one
// round.
struct Comparison {
  Cell cell;  // of either side
  Measurement sluice;
  Measurement plain;
};

// What else a reader has to know.
struct Circumstances {
  uint32_t rounds = 0;  // measured, in a cell
  uint32_t passes = 0;
  double seconds = 0;  // that the whole run took
  double load = 0;     // of the machine, when the run began
};

// A line of circumstances, two of headings, and one for each comparison.
std::string Table(const Circumstances& circumstances, const std::vector<Comparison>& comparisons);

// A line of JSON for each side of each comparison.
std::string JsonLines(const std::vector<Comparison>& comparisons);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_TABLE_H_
