// Workers and observers join, send heartbeats, and leave. Membership also keeps what they report.

#ifndef SLUICE_SERVER_SHARD_MEMBERSHIP_H_
#define SLUICE_SERVER_SHARD_MEMBERSHIP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/current_step.h"
#include "server/admission/pull_queue.h"
#include "server/admission/push_admission.h"
#include "server/admission/state_requests.h"
#include "server/membership/job_lifecycle.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/shard/job_history.h"
#include "server/shard/shard_watch.h"
#include "server/state/completions.h"
#include "server/state/job_results.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"

namespace sluice {

// The parts of the coordinator that depend on who takes part.
struct MembershipParts {
  const ShardOptions& options;
  RuntimeSettings& settings;
  Roster& roster;
  const JobLifecycle& lifecycle;
  CurrentStep& step;
  PushAdmission& admission;
  PullQueue& pulls;
  const StateRequests& states;
  const JobHistory& history;
  ShardWatch& watch;
  const Clock& clock;  // that times leases
};

// Externally synchronized, together with these parts, which outlive it; the coordinator owns it.
class Membership {
 public:
  explicit Membership(const MembershipParts& job) : job_(job), ticked_(job.clock.Now()) {}

  // Shard's methods of these names, with their errors. Coordinator::Tick() follows.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener,
                               Completions* completions);
  absl::StatusOr<Step> Heartbeat(SessionId session,
                                 const absl::optional<StepMeasurement>& measurement);
  void ConnectionLost(SessionId session);
  absl::StatusOr<Step> Leave(SessionId session, const Farewell& farewell, Completions* completions);
  absl::Status Evict(const std::string& worker, Completions* completions);

  // Time has passed: notes who has waited for this server since the last call, and, if `silent`,
  // for another one.
  void NoteServed(bool silent);
  // The step has waited for max_step_wait: evicts the workers that it waits for, or excuses them.
  void EndOverdueWait(Completions* completions);

  const Results& results() const { return results_.all(); }  // that leaving workers reported
  void Describe(ShardStatus* state) const;                   // fills in what workers have measured

 private:
  const MembershipParts job_;
  absl::Time ticked_;  // when NoteServed() was last called
  JobResults results_;
  MeasurementStatus measured_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_MEMBERSHIP_H_
