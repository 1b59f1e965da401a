// The results for people, and for programs.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

// What else a reader has to know.
struct Circumstances {
  uint32_t passes = 0;
  double seconds = 0;  // that the whole run took
  double load = 0;     // of the machine, when the run began
  uint32_t cores = 0;
  uint32_t threads = 0;    // for arithmetic, of each peer's process
  std::string congestion;  // the kernel's TCP congestion control, on which loopback's speed depends
};

// A line of circumstances, two of headings, and one for each result.
std::string Table(const Circumstances& circumstances, const std::vector<Result>& results);

// A line of JSON for each result.
std::string JsonLines(const std::vector<Result>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_
