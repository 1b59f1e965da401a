// The rules in which the consistency modes differ: which gradients count, when a step is complete,
// and which workers wait. All other code of the server is the same in every mode.
//
// The policy is pure arithmetic on the numbers in StepProgress and WorkerProgress. It has no state
// and no error. The staleness rule is that of TensorFlow's ConditionalAccumulator, with a bound
// that may be greater than 0.

#ifndef SLUICE_SERVER_POLICY_STALENESS_POLICY_H_
#define SLUICE_SERVER_POLICY_STALENESS_POLICY_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/protocol/consistency.h"

namespace sluice {

// The facts about the current step that the policy uses.
struct StepProgress {
  Step step;
  bool started = false;      // the workers that the first step waits for have joined
  bool overdue = false;      // the step has waited for longer than max_step_wait
  uint32_t accumulated = 0;  // gradients that count, also those not in the sum yet
  uint32_t skipped = 0;      // workers whose gradient was not finite and is left out
  uint32_t members = 0;      // workers that take part in the step
  uint32_t missing = 0;      // members that have not contributed, and those that are absent
  uint32_t absent = 0;       // workers that the first step waits for and that have not joined
  bool all_wait = false;     // with a journal: every worker waits, for this step or a later one
  uint32_t joining = 0;      // workers that take part from the next step
  uint64_t slowest = 0;      // the lowest clock of a member
};

// The facts about one worker that the policy uses.
struct WorkerProgress {
  bool contributed = false;  // to the current step
  uint64_t clock = 0;        // number of pushes that it has made
};

// Immutable, except by assignment: any thread may read it.
class StalenessPolicy {
 public:
  // `consistency` is valid.
  explicit StalenessPolicy(const Consistency& consistency) : consistency_(consistency) {}

  // Whether a gradient of this staleness counts.
  bool Admits(uint64_t staleness) const;

  // Whether a worker contributes at most once to a step.
  bool OncePerStep() const;

  // Whether the mode bounds how far a worker's clock may be ahead of the slowest. Then workers wait
  // for the slowest worker, and no step waits for workers.
  bool BoundsLead() const;

  // Whether the worker is so far ahead of the slowest that it must not push.
  bool IsAhead(const WorkerProgress& worker, const StepProgress& progress) const;

  // Whether a worker whose push was answered gets the parameters now. If not, its pull waits.
  bool MayProceed(const WorkerProgress& worker, const StepProgress& progress) const;

  // Whether the step can be applied now.
  bool Completes(const StepProgress& progress) const;

  // How many gradients complete the step, as it looks now. No step is decided by it.
  uint32_t Required(const StepProgress& progress) const;

  // Whether a worker that joins during a step takes part only from the next step.
  bool JoinsAtStepBoundary() const { return OncePerStep(); }

  const Consistency& consistency() const { return consistency_; }

 private:
  Consistency consistency_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_STALENESS_POLICY_H_
