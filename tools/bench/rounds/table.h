// Prints the results of the round benchmark, as a table for people and as JSON for programs.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

// The conditions of a run, which the first line names.
struct Circumstances {
  uint32_t passes = 0;
  double seconds = 0;  // of the whole run
  double load = 0;     // of the machine, when the run began
  uint32_t cores = 0;
  uint32_t threads = 0;    // for arithmetic, in each process of a peer
  std::string congestion;  // the kernel's TCP congestion control; loopback's speed depends on it
};

// Returns a line of conditions, two of headings, and one for each result.
std::string Table(const Circumstances& circumstances, const std::vector<Result>& results);

// Returns a line of JSON for each result.
std::string JsonLines(const std::vector<Result>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_TABLE_H_
