// Results of a benchmark as a test makes them up.

#ifndef SLUICE_TESTS_BENCH_ROUNDS_RESULTS_H_
#define SLUICE_TESTS_BENCH_ROUNDS_RESULTS_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/bench/harness/cell.h"

namespace sluice::bench {

inline Result MakeResult(const std::string& row, double megabytes, uint32_t workers,
                         std::vector<double> seconds) {
  Result result;
  result.cell.row.name = row;
  result.cell.elements = ElementsOf(megabytes);
  result.cell.workers = workers;
  result.measurement.seconds = std::move(seconds);
  return result;
}

}  // namespace sluice::bench

#endif  // SLUICE_TESTS_BENCH_ROUNDS_RESULTS_H_
