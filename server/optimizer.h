// What turns the gradient of a step into the next parameters.
//
// One interface for all optimizers; each works elementwise in one pass over memory, so that how a
// vector is cut into pieces never changes a bit.

#ifndef SLUICE_SERVER_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZER_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/optimizer_options.h"

namespace sluice {

// What holds for all elements of one step.
struct OptimizerStep {
  float divisor = 1;  // the gradient is sum / divisor
  float learning_rate = 0;
  bool first = false;  // of this optimizer's life
};

// Externally synchronized.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Writes to `next` what one step makes of `current`, for elements from `begin` of the vector on,
  // all of them parameters; once for each. The spans have one size; `next` overlaps no other.
  virtual void Apply(const OptimizerStep& step, uint64_t begin, absl::Span<const float> sum,
                     absl::Span<const float> current, absl::Span<float> next) = 0;
};

// For vectors of `size` elements. `options` are valid.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerOptions& options, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZER_H_
