// Workers and observers join, send heartbeats, and leave. Membership also keeps what they report.

#ifndef SLUICE_SERVER_SHARD_MEMBERSHIP_H_
#define SLUICE_SERVER_SHARD_MEMBERSHIP_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "server/state/completions.h"
#include "server/state/job_results.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"

namespace sluice {

struct JobParts;

// Externally synchronized, together with the parts that own it.
class Membership {
 public:
  explicit Membership(JobParts& job);

  // Shard's methods of these names, with their errors.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener,
                               Completions* completions);
  absl::StatusOr<Step> Heartbeat(SessionId session,
                                 const absl::optional<StepMeasurement>& measurement);
  absl::StatusOr<Step> Leave(SessionId session, const Farewell& farewell, Completions* completions);

  // Time has passed: notes who has waited for this server since the last call, and, if `silent`,
  // for another one.
  void NoteServed(bool silent);
  // The step has waited for max_step_wait: evicts the workers that it waits for, or excuses them.
  void EndOverdueWait(Completions* completions);

  const Results& results() const { return results_.all(); }  // that leaving workers reported
  void Describe(ShardStatus* state) const;                   // fills in what workers have measured

 private:
  JobParts& job_;
  absl::Time ticked_;  // when NoteServed() was last called
  JobResults results_;
  MeasurementStatus measured_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_MEMBERSHIP_H_
