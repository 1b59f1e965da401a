// The gradient that every worker of every row pushes, and what SGD makes of it.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_
#define SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice::bench {

inline constexpr double kLearningRate = 1.0 / 64;

// Returns values that are spread evenly over [−2⁻⁹, 2⁻⁹) in no order and use all bits of the
// mantissa. So a codec can compress them about as little as a real gradient.
// peers/participant.py makes the same values.
std::vector<float> SyntheticGradient(uint64_t elements);
void WriteSyntheticGradient(absl::Span<float> gradient);

// Returns an error unless `parameters` are what plain SGD makes of zeros in `steps` steps with
// `gradient`. All workers push the same gradient, so it is also their mean.
absl::Status CheckParameters(absl::Span<const float> gradient, uint64_t steps,
                             absl::Span<const float> parameters);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_GRADIENT_H_
