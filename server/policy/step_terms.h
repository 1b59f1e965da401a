// The terms of one step: with the gradients, the optimizer and its state, they decide every bit of
// the parameters that the step makes.
//
// The coordinator sets them when it applies the step, and the journal records them. A later server
// repeats the step with the recorded terms, whatever its own flags say.

#ifndef SLUICE_SERVER_POLICY_STEP_TERMS_H_
#define SLUICE_SERVER_POLICY_STEP_TERMS_H_

#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"

namespace sluice {

struct StepTerms {
  // Decides the weights of the gradients, the divisor of their sum, and the order of addition.
  Consistency consistency;
  // See RuntimeSettings::LearningRates().
  std::vector<double> learning_rates;
  // Bounds the Euclidean norm of the reduced gradient over all PARAMETER ranges; see Guards.
  absl::optional<double> clip_norm;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_STEP_TERMS_H_
