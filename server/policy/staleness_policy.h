// The gate's rules: which gradients count, when a step is complete, and who waits for whom. All
// that differs between modes is here.
//
// The gate is that of TensorFlow's ConditionalAccumulator, with a bound that may be larger than 0.

#ifndef SLUICE_SERVER_POLICY_STALENESS_POLICY_H_
#define SLUICE_SERVER_POLICY_STALENESS_POLICY_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/protocol/consistency.h"

namespace sluice {

// The step under way, as the policy sees it.
struct StepProgress {
  Step step;
  bool started = false;      // the workers that the first step waits for have joined
  bool overdue = false;      // it has been held up for longer than max_step_wait
  uint32_t accumulated = 0;  // gradients counted
  uint32_t skipped = 0;      // workers whose gradient was not finite, and is left out
  uint32_t members = 0;      // workers that take part
  uint32_t missing = 0;      // of those, and of those yet to join, how many have not contributed
  bool all_wait = false;     // every worker waits until the step is made
  uint32_t joining = 0;      // workers that take part from the next step on
  uint64_t slowest = 0;      // the fewest pushes that a member has made
};

// One worker, as the policy sees it.
struct WorkerProgress {
  bool contributed = false;  // to the step under way
  uint64_t clock = 0;        // pushes it has made
};

// Safe to read from any thread.
class StalenessPolicy {
 public:
  // `consistency` is valid.
  explicit StalenessPolicy(const Consistency& consistency) : consistency_(consistency) {}

  // Whether a gradient of that staleness counts.
  bool Admits(uint64_t staleness) const;

  // Whether a worker contributes at most once to a step.
  bool OncePerStep() const;

  // Whether the worker has run so far ahead of the slowest that it must wait.
  bool IsAhead(const WorkerProgress& worker, const StepProgress& progress) const;

  // Whether a worker whose push was answered gets parameters to go on with.
  bool LetsGoOn(const WorkerProgress& worker, const StepProgress& progress) const;

  // Whether the step can be applied now.
  bool Completes(const StepProgress& progress) const;

  // How many gradients complete the step, for people.
  uint32_t Required(const StepProgress& progress) const;

  // Whether a worker that joins while a step is under way takes part from the next one on.
  bool JoinsAtStepBoundary() const { return OncePerStep(); }

  const Consistency& consistency() const { return consistency_; }

 private:
  Consistency consistency_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_STALENESS_POLICY_H_
