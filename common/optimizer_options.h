// What a job's optimizer is, as its workers say when they join.

#ifndef SLUICE_COMMON_OPTIMIZER_OPTIONS_H_
#define SLUICE_COMMON_OPTIMIZER_OPTIONS_H_

#include <cstdint>
#include <variant>

#include "absl/status/status.h"

namespace sluice {

// Stochastic gradient descent: names, defaults and meaning of torch::optim::SGD.
struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  // OK, or BAD_OPTIMIZER saying which option is out of its domain.
  absl::Status Validate() const;
};

// Periodic averaging: workers take `local_steps` steps with optimizers of their own, then push
// their parameters; a step of the server moves its own towards their mean. With a moving rate of 1
// the mean replaces them; below that this is the centre of elastic averaging (Zhang, Choromanska,
// LeCun 2015, "Deep Learning with Elastic Averaging SGD", equation 6, where the rate is β).
struct AveragingOptions {
  double moving_rate = 1;    // 0 < rate ≤ 1
  uint32_t local_steps = 1;  // between two pushes, at least 1

  absl::Status Validate() const;  // as above
};

using OptimizerOptions = std::variant<SgdOptions, AveragingOptions>;

absl::Status Validate(const OptimizerOptions& options);

// OK if a worker's options equal the job's; else OPTIMIZER_MISMATCH naming the first that differs.
absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker);

}  // namespace sluice

#endif  // SLUICE_COMMON_OPTIMIZER_OPTIONS_H_
