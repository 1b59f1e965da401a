// Prints the results of the crowd benchmark, as a table for people and as JSON for programs.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_TABLE_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_TABLE_H_

#include <string>
#include <vector>

#include "tools/bench/crowds/crowd_result.h"

namespace sluice::bench {

// Returns two lines of headings, then the lines of each result. The column "x first" is the
// server's CPU of a round / that of the first result of the same size and mode.
std::string CrowdTable(const std::vector<CrowdResult>& results);

// Returns a line of JSON for each result.
std::string CrowdJsonLines(const std::vector<CrowdResult>& results);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_TABLE_H_
