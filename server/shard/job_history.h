// What a job takes along from one incarnation to the next: the coordinator's part of checkpoints
// and of the journal's records. They also have the parameters and the optimizer's state, which it
// does not know.

#ifndef SLUICE_SERVER_SHARD_JOB_HISTORY_H_
#define SLUICE_SERVER_SHARD_JOB_HISTORY_H_

#include <cstdint>

#include "server/policy/step_terms.h"
#include "server/state/incarnation_history.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/step_journal.h"

namespace sluice {

struct JobParts;

// Externally synchronized, together with the parts that own it.
class JobHistory {
 public:
  explicit JobHistory(JobParts& job);

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
  JobParts& job_;
  IncarnationHistory incarnations_;
  uint64_t lost_steps_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_JOB_HISTORY_H_
