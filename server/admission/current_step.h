// The current step: its number, its contributions, and whether it is complete.
//
// JobParts owns it. It combines the numbers of the roster and the contributions into the
// StepProgress that the policy judges.

#ifndef SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_
#define SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_

#include <vector>

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

// Externally synchronized, together with the objects that it refers to.
class CurrentStep {
 public:
  // The references outlive it.
  CurrentStep(const RuntimeSettings& settings, Roster& roster, const PullQueue& pulls,
              const Clock& clock)
      : settings_(settings), roster_(roster), pulls_(pulls), clock_(clock) {}

  Step number() const { return number_; }
  // The first step that changed settings can apply to.
  Step NextBoundary() const { return contributions_.empty() ? number_ : number_.Next(); }

  Contributions& contributions() { return contributions_; }
  const Contributions& contributions() const { return contributions_; }

  // The numbers that the policy judges.
  StepProgress Progress() const;
  bool IsComplete() const { return settings_.policy().Completes(Progress()); }

  // Decides again whether the step has waited for longer than max_step_wait. Until the next call,
  // overdue() changes only if the wait ends.
  void JudgeWait();
  bool overdue() const { return overdue_; }
  // The wait was ended.
  void EndWait() { overdue_ = false; }
  // Whether the step would be complete even if its wait were not over. Then nobody delays it.
  bool WaitsForNobody() const;
  // The workers that have delayed the step for max_step_wait. The time in which they waited for
  // this server is not counted.
  std::vector<SessionId> Delayers() const;

  // The members that the step waits for. In ssp: those that the workers that are ahead wait for.
  std::vector<SessionId> Holders(const StepProgress& progress) const;

  // Since when the step has waited for workers; in ssp, since when a worker has waited for others.
  absl::optional<absl::Time> HeldUpSince() const;

  // Whether a gradient of that rank would be the first of the sum of this step, and not the last.
  // Only in the order of ranks is that known before it has arrived.
  bool WouldBeginSum(const Rank& rank) const;
  // Returns the contribution to be accumulated next, if its turn has come.
  absl::optional<Contribution> TakeNext();

  // Sets the number, before the first contribution.
  void Restore(Step number);

  // From now on each contributor waits for its answer until the step is durable. The policy then
  // completes a step that all workers wait for.
  void HoldContributors() { holds_contributors_ = true; }

  // The step was applied. Begins the next one.
  void Finish();

  // Returns the step's status for people. `in_flight` is null before the first worker joined.
  StepState Describe(const InFlightLimit* in_flight) const;

 private:
  const RuntimeSettings& settings_;
  Roster& roster_;
  const PullQueue& pulls_;
  const Clock& clock_;
  Step number_;
  bool holds_contributors_ = false;
  bool overdue_ = false;
  Contributions contributions_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_CURRENT_STEP_H_
