// Measures a cell once: starts its processes, warms them up, measures rounds and ends them.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_
#define SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/bench/harness/cell.h"
#include "tools/bench/harness/process_group.h"

namespace sluice::bench {

// Rounds that do not count. They let buffers grow and touch pages.
inline constexpr uint32_t kWarmUpRounds = 3;

// Adds `rounds` measured rounds of `cell` to `measurement`.
absl::Status MeasureSample(const Cell& cell, const Programs& programs, uint32_t rounds,
                           Measurement& measurement);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_SAMPLE_H_
