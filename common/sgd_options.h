// The options of stochastic gradient descent: names, defaults and meaning of torch::optim::SGD.

#ifndef SLUICE_COMMON_SGD_OPTIONS_H_
#define SLUICE_COMMON_SGD_OPTIONS_H_

#include "absl/status/status.h"

namespace sluice {

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  // OK, or BAD_OPTIMIZER saying which option is out of its domain.
  absl::Status Validate() const;
};

// OK if a worker's options equal the job's; else OPTIMIZER_MISMATCH naming the first that differs.
absl::Status CheckSameOptimizer(const SgdOptions& job, const SgdOptions& worker);

}  // namespace sluice

#endif  // SLUICE_COMMON_SGD_OPTIONS_H_
