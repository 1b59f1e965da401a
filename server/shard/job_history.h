// What a job takes along from one incarnation to the next: the coordinator's part of checkpoints
// and of the journal's records. They also have the parameters and the optimizer's state, which it
// does not know.

#ifndef SLUICE_SERVER_SHARD_JOB_HISTORY_H_
#define SLUICE_SERVER_SHARD_JOB_HISTORY_H_

#include <cstdint>

#include "common/base/clock.h"
#include "server/admission/current_step.h"
#include "server/admission/push_admission.h"
#include "server/membership/job_lifecycle.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/policy/step_terms.h"
#include "server/shard/shard_watch.h"
#include "server/state/incarnation_history.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/step_journal.h"

namespace sluice {

// The parts of the coordinator that are saved and restored.
struct SavedParts {
  const ShardOptions& options;
  RuntimeSettings& settings;
  Roster& roster;
  JobLifecycle& lifecycle;
  CurrentStep& step;
  PushAdmission& admission;
  ShardWatch& watch;
  const Clock& clock;  // that times leases
};

// Externally synchronized, together with these parts, which outlive it; the coordinator owns it.
class JobHistory {
 public:
  explicit JobHistory(const SavedParts& job) : job_(job), incarnations_(job.options.incarnation) {}

  // Recovery: see DurabilityCalls. Before the first worker joins.
  void Restore(const ShardCheckpoint& checkpoint);
  void Replay(const StepRecord& record);
  void BeginIncarnation(const IncarnationBegins& incarnations);
  void SetLostSteps(uint64_t steps);

  const IncarnationHistory& incarnations() const { return incarnations_; }
  uint64_t lost_steps() const { return lost_steps_; }  // of earlier incarnations

  // The checkpoint, except the parameters and the optimizer's state. Called while no step is being
  // applied.
  ShardCheckpoint Checkpoint() const;
  // The journal's record of the coming step. StepLoop and the stripe complete it.
  StepRecord MakeStepRecord(const StepTerms& terms) const;

 private:
  const SavedParts job_;
  IncarnationHistory incarnations_;
  uint64_t lost_steps_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_JOB_HISTORY_H_
