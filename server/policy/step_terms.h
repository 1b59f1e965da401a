// The terms of one step: with the gradients, the optimizer and its state, they decide every bit of
// the parameters that the step makes.
//
// The coordinator sets them when it applies the step. StepDirector completes them with what depends
// on the ages of the gradients, and the journal records them. A later server repeats the step with
// the recorded terms, whatever its own flags say.

#ifndef SLUICE_SERVER_POLICY_STEP_TERMS_H_
#define SLUICE_SERVER_POLICY_STEP_TERMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/running_means.h"
#include "server/policy/ordered_momentum.h"

namespace sluice {

struct StepTerms {
  // Decides the weights of the gradients, the divisor of their sum, and the order of addition.
  Consistency consistency;
  // See RuntimeSettings::LearningRates(). A journal records them after the gap was divided out of
  // them, if the rule gap_aware does that; see StepDirector.
  std::vector<double> learning_rates;
  // The options with which the workers' programs make the step, in place of the job's. Their
  // learning rates are part of those above.
  SharedOptions changed = nullptr;
  // Bounds the Euclidean norm of the reduced gradient over all PARAMETER ranges; see Guards.
  absl::optional<double> clip_norm;
  // The rules for stale gradients that are in use, and what they depend on. Not recorded: their
  // results are.
  bool gap_aware = false;
  bool ordered_momentum = false;
  uint32_t workers = 1;  // that take part; at least 1
  // Absent: the optimizer's own momentum. StepDirector sets it if `ordered_momentum` is set.
  absl::optional<OrderedMomentum> ordered = absl::nullopt;
  // By what beta1 is divided: not 1 under the rule Consistency::divided_momentum only.
  double momentum_divisor = 1;
  // Which statistics are running means. StepDirector sets them, unless the journal has them.
  RunningMeans running_means = {};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_STEP_TERMS_H_
