// Stochastic gradient descent with momentum, dampening, Nesterov momentum and weight decay.
//
// The formulas of torch::optim::SGD, in float32, in one pass over memory. With g the mean gradient:
//   d = g + weight_decay · p
//   b = d at the first step, momentum · b + (1 − dampening) · d later   (only if momentum ≠ 0)
//   d = d + momentum · b if nesterov, else b                            (only if momentum ≠ 0)
//   p ← p − learning_rate · d

#ifndef SLUICE_SERVER_SGD_OPTIMIZER_H_
#define SLUICE_SERVER_SGD_OPTIMIZER_H_

#include <memory>

#include "absl/types/span.h"
#include "common/layout.h"
#include "common/sgd_options.h"
#include "server/float_buffer.h"

namespace sluice {

// Externally synchronized.
class SgdOptimizer {
 public:
  // `options` are valid.
  SgdOptimizer(const SgdOptions& options, std::shared_ptr<const Layout> layout);

  // Writes to `next` what one step makes of `current`. PARAMETER ranges follow the formulas above
  // with g = sum / divisor; STATISTIC ranges become sum / divisor. All spans have the layout's
  // size; `next` overlaps no other.
  void Apply(absl::Span<const float> sum, float divisor, absl::Span<const float> current,
             absl::Span<float> next);

  const SgdOptions& options() const { return options_; }

 private:
  void ApplyToParameters(size_t begin, size_t end, const float* sum, float divisor,
                         const float* current, float* next);

  const SgdOptions options_;
  const std::shared_ptr<const Layout> layout_;
  FloatBuffer momentum_;  // empty if momentum is 0
  bool first_step_ = true;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SGD_OPTIMIZER_H_
