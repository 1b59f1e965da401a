// Decides which pulls are answered: by the mode, by what a pull asks for, and by what its worker
// has pushed. A pull of a worker that is asked for its model (StateRequests) ends with that
// request.

#ifndef SLUICE_SERVER_ADMISSION_PULL_GATE_H_
#define SLUICE_SERVER_ADMISSION_PULL_GATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/current_step.h"
#include "server/admission/pull_queue.h"
#include "server/admission/state_requests.h"
#include "server/membership/job_lifecycle.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/state/completions.h"

namespace sluice {

// Externally synchronized, together with the objects that it refers to.
class PullGate {
 public:
  // The references outlive it.
  PullGate(const RuntimeSettings& settings, const JobLifecycle& lifecycle, const Roster& roster,
           const CurrentStep& step, PullQueue& pulls, const StateRequests& states,
           const Clock& clock)
      : settings_(settings),
        lifecycle_(lifecycle),
        roster_(roster),
        step_(step),
        pulls_(pulls),
        states_(states),
        clock_(clock) {}

  // Answers the pulls whose turn has come. The coordinator calls it after every event; `changed`
  // are the sessions whose records have changed since.
  void Settle(const std::vector<SessionId>& changed, Completions* completions);

 private:
  absl::StatusOr<PullTurn> TurnOf(const PullRequest& request, const StepProgress& progress) const;

  const RuntimeSettings& settings_;
  const JobLifecycle& lifecycle_;
  const Roster& roster_;
  const CurrentStep& step_;
  PullQueue& pulls_;
  const StateRequests& states_;
  const Clock& clock_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_PULL_GATE_H_
