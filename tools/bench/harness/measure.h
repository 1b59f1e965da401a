// A run: which rows can be measured here, and the visits to all cells.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_
#define SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/harness/cell.h"
#include "tools/bench/harness/process_group.h"
#include "tools/bench/harness/row.h"

namespace sluice::bench {

struct Availability {
  std::vector<Row> rows;  // that have all they need, in their order
  std::vector<std::string>
      skipped;  // a line for each other: its name, and the first thing it needs
};

Availability FindAvailable(const std::vector<Row>& rows, const Programs& programs);

struct Outcome {
  std::vector<Result> results;        // of the cells that never failed, in their order
  std::vector<std::string> failures;  // a line for each other, which was not visited again
};

// Visits all cells in their order, then all again, so that what compares with each other is
// measured within minutes: `passes` visits to each, of `rounds` measured rounds. Tells on stderr
// which cell it is at, if that is a terminal.
Outcome MeasureCells(const std::vector<Cell>& cells, const Programs& programs, uint32_t rounds,
                     uint32_t passes);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_MEASURE_H_
