// The gate: which gradients count, and when a step is complete. All that differs between modes is
// here.
//
// The gate is that of TensorFlow's ConditionalAccumulator, with a bound that may be larger than 0.

#ifndef SLUICE_SERVER_STALENESS_POLICY_H_
#define SLUICE_SERVER_STALENESS_POLICY_H_

#include <cstdint>

#include "common/consistency.h"

namespace sluice {

// The current step, as the policy sees it.
struct StepProgress {
  bool started = false;      // the workers that the first step waits for have joined
  uint32_t accumulated = 0;  // gradients counted
  uint32_t members = 0;      // workers that take part
  uint32_t missing = 0;      // of those, how many have not contributed
};

// Immutable; safe to use from any thread.
class StalenessPolicy {
 public:
  // `consistency` is valid.
  explicit StalenessPolicy(const Consistency& consistency) : consistency_(consistency) {}

  // Whether a gradient of that staleness counts.
  bool Admits(uint64_t staleness) const;

  // Whether a worker contributes at most once to a step.
  bool OncePerStep() const;

  // Whether the step can be applied now.
  bool Completes(const StepProgress& progress) const;

  // How many gradients complete the step, for people.
  uint32_t Required(const StepProgress& progress) const;

  // Whether a worker that joins while a step is under way takes part from the next one on.
  bool JoinsAtStepBoundary() const;

  const Consistency& consistency() const { return consistency_; }

 private:
  const Consistency consistency_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STALENESS_POLICY_H_
