// The gradient that every worker of every row pushes, and what SGD makes of it.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_
#define SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice::bench {

inline constexpr double kLearningRate = 1.0 / 64;

// Spread evenly over [−2⁻⁹, 2⁻⁹), without order and with all bits of the mantissa in use, so that a
// codec finds about as little to compress as in a real gradient. peers/participant.py has the same.
std::vector<float> SyntheticGradient(uint64_t elements);

// An error unless `parameters`, which began as zeros, are what plain SGD makes of `steps` steps
// whose gradient was always the same: all workers push the same, so that is also their mean.
absl::Status CheckParameters(absl::Span<const float> gradient, uint64_t steps,
                             absl::Span<const float> parameters);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_
