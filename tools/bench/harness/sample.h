// One visit to a cell: its processes are started, warmed up, measured and ended.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_
#define SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/bench/harness/cell.h"
#include "tools/bench/harness/process_group.h"

namespace sluice::bench {

// Rounds before the first that counts: buffers have grown by then, and pages were touched.
inline constexpr uint32_t kWarmUpRounds = 3;

// Adds `rounds` measured rounds of `cell` to `measurement`. All workers begin a round together.
absl::Status MeasureSample(const Cell& cell, const Programs& programs, uint32_t rounds,
                           Measurement& measurement);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_
