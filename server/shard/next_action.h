// The work that the Coordinator gives to StepLoop.

#ifndef SLUICE_SERVER_SHARD_NEXT_ACTION_H_
#define SLUICE_SERVER_SHARD_NEXT_ACTION_H_

#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/aggregation/contributions.h"
#include "server/policy/step_terms.h"

namespace sluice {

// The next action for the current step. It is one of:
// 1. `checkpoint`: take a checkpoint.
// 2. `apply`: apply the step, after accumulating `contribution`, if there is one.
// 3. `contribution`: accumulate it.
// 4. None of these: idle.
// Before that, whatever it is, all servers drop the gradients of `dropped`, which do not count.
struct NextAction {
  absl::optional<Contribution> contribution;
  bool apply = false;
  bool checkpoint = false;
  bool saves_end = false;  // with `checkpoint`: of the end of training
  StepTerms terms;
  std::vector<PushId> dropped;
  absl::Duration waited;  // to apply: since the first gradient of the step

  bool idle() const { return !contribution.has_value() && !apply && !checkpoint; }
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_NEXT_ACTION_H_
