// A run: finds the rows that this machine can measure, and measures all cells in turn.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_
#define SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/progress_line.h"
#include "tools/bench/harness/cell.h"
#include "tools/bench/harness/process_group.h"
#include "tools/bench/harness/row.h"

namespace sluice::bench {

struct Availability {
  std::vector<Row> rows;             // those whose needs are met, in their order
  std::vector<std::string> skipped;  // a line for each other row: its name and its first unmet need
};

Availability FindAvailable(const std::vector<Row>& rows, const Programs& programs);

struct Outcome {
  std::vector<Result> results;        // those of the cells that never failed, in their order
  std::vector<std::string> failures;  // a line for each other cell, which is not measured again
};

// Measures `rounds` rounds of every cell, and repeats this `passes` times. So rows that are
// compared are measured within minutes of each other. Says to `output` how long it will still take.
Outcome MeasureCells(const std::vector<Cell>& cells, const Programs& programs, uint32_t rounds,
                     uint32_t passes, const ProgressOutput& output);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_
