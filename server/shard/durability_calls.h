// The calls by which a job is restored from a directory, and saved there: recovery, the journal,
// checkpoints, and the end of training. server/durable makes them.

#ifndef SLUICE_SERVER_SHARD_DURABILITY_CALLS_H_
#define SLUICE_SERVER_SHARD_DURABILITY_CALLS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/replica/server_stripe.h"
#include "server/shard/checkpoint_requests.h"
#include "server/shard/job_state.h"
#include "server/shard/step_loop.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/step_journal.h"

namespace sluice {

// Any thread may call any method, unless a comment says otherwise.
class DurabilityCalls {
 public:
  // All outlive it.
  DurabilityCalls(const ShardOptions& options, JobState& job, ServerStripe& stripe, StepLoop& steps)
      : options_(options), job_(job), stripe_(stripe), steps_(steps) {}

  // Start: optional, in this order, by one thread. With one server: before the server listens. With
  // several and a directory, only BeginRecovery() is called before. The thread sluice-recover calls
  // the others, while the leader listens and ticks. No session opens before EndRecovery(), so no
  // other thread adds a gradient or makes a step: that protects what the mutex does not.
  //
  // Enclose a recovery during which other threads call the shard. Until EndRecovery(), Join() fails
  // with UNAVAILABLE. Until BeginIncarnation() or EndRecovery(), TakeCheckpoint() and changes of
  // settings do, too.
  void BeginRecovery() ABSL_LOCKS_EXCLUDED(job_.mu);
  void EndRecovery() ABSL_LOCKS_EXCLUDED(job_.mu);
  bool recovers() const ABSL_LOCKS_EXCLUDED(job_.mu);  // is between the two
  // DATA_LOSS if its slots do not fit. With several servers it has this server's stripe, and the
  // others begin to load theirs. Join() fails with UNAVAILABLE until all have reported. `begins`:
  // the incarnations since the checkpoint, and where each began.
  absl::Status Restore(const ShardCheckpoint& checkpoint, const IncarnationBegins& begins = {})
      ABSL_LOCKS_EXCLUDED(job_.mu);
  // Waits until the other servers have loaded their stripes. The error of StopWaiting() after that.
  absl::StatusOr<LeastJournaled> AwaitLoaded() ABSL_LOCKS_EXCLUDED(job_.mu);
  // Makes the next journaled step again, on all servers. FAILED_PRECONDITION if it comes out with
  // other bits on this one. Another server on which that happens refuses to save the next
  // checkpoint.
  absl::Status Replay(const StepRecord& record, absl::Span<const float> sum,
                      absl::Span<const TableSums> rows) {
    return steps_.Replay(record, sum, rows);
  }
  // Begins the new incarnation. `incarnations`: those since the checkpoint, and where each began.
  void BeginIncarnation(const IncarnationBegins& incarnations) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Tells workers of the steps of earlier incarnations that are lost.
  void SetLostSteps(uint64_t steps) ABSL_LOCKS_EXCLUDED(job_.mu);

  // `journal` outlives the shard. It gets each step from now on, and answers wait for OnDurable().
  void EnableJournal(StepJournal* journal) ABSL_LOCKS_EXCLUDED(job_.mu);
  // `listener` is called before a step is published.
  void SetStepListener(std::function<void(Step)> listener) {
    steps_.SetStepListener(std::move(listener));
  }
  // All steps up to this one are in the journals of all servers.
  void OnDurable(Step step) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Refuses new pushes with `error`, until it is OK.
  void SetJournalError(const absl::Status& error) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Answers that the journal holds fail, for good.
  void FailHeldAnswers(const absl::Status& why) ABSL_LOCKS_EXCLUDED(job_.mu);

  // Takes a checkpoint of the initial parameters and, unless `steps` is 0, every `steps` steps.
  void TakeCheckpoints(uint64_t steps, CheckpointCallback taken) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Takes one when no step is being applied, perhaps at once.
  void TakeCheckpoint(CheckpointCallback taken) ABSL_LOCKS_EXCLUDED(job_.mu) {
    Request(std::move(taken), &CheckpointRequests::Add);
  }
  // The same for what nobody saves: this server's stripe, without those of the others.
  void CopyStripe(CheckpointCallback taken) ABSL_LOCKS_EXCLUDED(job_.mu) {
    Request(std::move(taken), &CheckpointRequests::AddCopy);
  }
  // Tells the other servers which checkpoints are whole.
  void KeepCheckpoints(std::vector<CheckpointKey> keep) ABSL_LOCKS_EXCLUDED(job_.mu);

  // From now on, `save` gets a checkpoint, or an error, when training ends. The end is announced
  // when OnEndSaved() is called with the checkpoint's step or the error. Recover() calls it.
  void SaveEndWith(CheckpointCallback save) ABSL_LOCKS_EXCLUDED(job_.mu);
  void OnEndSaved(const absl::StatusOr<Step>& saved) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Calls `done` at once, unless training is over and its end is still to be saved. In that case
  // calls `done` when the end is saved, cannot be saved, or has not been saved for 30 s. `done`
  // gets an error if another server was lost before that, because then steps may be lost, too.
  void WhenEndIsSaved(std::function<void(const absl::Status&)> done) ABSL_LOCKS_EXCLUDED(job_.mu);

 private:
  void Request(CheckpointCallback taken, void (CheckpointRequests::*add)(CheckpointCallback))
      ABSL_LOCKS_EXCLUDED(job_.mu);

  const ShardOptions& options_;
  JobState& job_;
  ServerStripe& stripe_;
  StepLoop& steps_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_DURABILITY_CALLS_H_
