// What an optimizer is told: the options of each kind, as values.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_

#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Stochastic gradient descent. This and the four below have the names, defaults and meaning of
// torch::optim, where learning_rate is lr. An eps of 0, which makes NaN of a gradient of 0, is
// refused.
struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  // OK, or BAD_OPTIMIZER saying which option is out of its domain.
  absl::Status Validate() const;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;  // 0 ≤ beta < 1
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // an L2 penalty: added to the gradient
  bool amsgrad = false;

  absl::Status Validate() const;  // as above
};

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // times the learning rate, of the parameters themselves
  bool amsgrad = false;

  absl::Status Validate() const;
};

struct AdagradOptions {
  double learning_rate = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  absl::Status Validate() const;
};

struct RmsPropOptions {
  double learning_rate = 1e-2;
  double alpha = 0.99;  // 0 ≤ alpha ≤ 1
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;

  absl::Status Validate() const;
};

// You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
// algorithm 2, with the weight decay of its experiments.
struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.01;

  absl::Status Validate() const;
};

// Periodic averaging: workers take `local_steps` steps with optimizers of their own, then push
// their parameters; a step of the server moves its own towards their mean. With a moving rate of 1
// the mean replaces them; below that this is the centre of elastic averaging (Zhang, Choromanska,
// LeCun 2015, "Deep Learning with Elastic Averaging SGD", equation 6, where the rate is β).
struct AveragingOptions {
  double moving_rate = 1;    // 0 < rate ≤ 1
  uint32_t local_steps = 1;  // between two pushes, at least 1

  absl::Status Validate() const;
};

using OptimizerOptions = std::variant<SgdOptions, AveragingOptions, AdamOptions, AdamWOptions,
                                      AdagradOptions, RmsPropOptions, LambOptions>;

absl::Status Validate(const OptimizerOptions& options);

// "sgd", "averaging", "adam", "adamw", "adagrad", "rmsprop", "lamb".
absl::string_view OptimizerName(const OptimizerOptions& options);

// 0 if the workers have it.
double LearningRateOf(const OptimizerOptions& options);

// OK if a worker's options equal the job's; else OPTIMIZER_MISMATCH naming the first that differs.
// `where` follows the option's name, if they do not hold for the whole model.
absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker,
                                absl::string_view where = "");

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_
