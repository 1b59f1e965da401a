// The step under way: its number, what counts towards it, and whether it is complete.

#ifndef SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_
#define SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/admission/in_flight_limit.h"
#include "server/admission/pull_queue.h"
#include "server/aggregation/contributions.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized, with all it refers to.
class CurrentStep {
 public:
  // All outlive it.
  CurrentStep(const RuntimeSettings& terms, const Roster& roster, const PullQueue& pulls,
              const Clock& clock)
      : settings_(terms), roster_(roster), pulls_(pulls), clock_(clock) {}

  Step number() const { return number_; }
  // The first step that can have new terms.
  Step NextBoundary() const { return contributions_.empty() ? number_ : number_.Next(); }

  Contributions& contributions() { return contributions_; }
  const Contributions& contributions() const { return contributions_; }

  // As the policy sees it now.
  StepProgress Progress() const;
  bool IsComplete() const { return settings_.policy().Completes(Progress()); }

  // Since when somebody has held it, or in ssp a worker, up.
  absl::optional<absl::Time> HeldUpSince() const;

  // The next contribution to be added up.
  absl::optional<Contribution> TakeNext();

  // Where training goes on, before anything counts towards it.
  void Restore(Step number) { number_ = number; }

  // From now on who contributes waits until the step is made, and kept.
  void HoldContributors() { holds_contributors_ = true; }

  // It was made: the next one is under way.
  void Finish();

  // Who are we waiting for? `room` is null before the first worker joined.
  StepState Describe(const InFlightLimit* room) const;

 private:
  const RuntimeSettings& settings_;
  const Roster& roster_;
  const PullQueue& pulls_;
  const Clock& clock_;
  Step number_;
  bool holds_contributors_ = false;
  Contributions contributions_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_
