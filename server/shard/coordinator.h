// All decisions of a shard, and none of its arithmetic: who takes part, which pushes count, when a
// step is complete, who may go on, and what the operator changes.
//
// A deterministic state machine on top of Roster, PushAdmission, CurrentStep and PullQueue. Its
// owner tells it what happens, asks it for work, does the work, and reports back. Every method that
// takes Completions adds the callbacks that are due to them.

#ifndef SLUICE_SERVER_SHARD_COORDINATOR_H_
#define SLUICE_SERVER_SHARD_COORDINATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/current_step.h"
#include "server/admission/gate.h"
#include "server/admission/pull_queue.h"
#include "server/admission/push_admission.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/pending_push.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/shard/next_action.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/completions.h"
#include "server/state/incarnation_history.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_status.h"
#include "server/state/step_journal.h"

namespace sluice {

// Externally synchronized.
class Coordinator {
 public:
  // As Shard's constructor.
  Coordinator(const ShardOptions& options, const Clock& clock, JobListener owner);

  // An earlier life of the server, as Shard's methods of these names; before anything else.
  void Restore(const ShardCheckpoint& checkpoint);
  void Replayed(const StepRecord& record, std::shared_ptr<Snapshot> next);
  void BeginIncarnation(const std::map<Incarnation, Step>& lives);
  void set_lost_steps(uint64_t steps) { lost_steps_ = steps; }

  // What is to be written down of the step that is about to be made, but for its gradients.
  StepRecord Record(const NextAction& work) const;
  // From now on no answer tells that a push counts before its step is kept.
  void HoldUntilDurable();
  void OnDurable(Step step, Completions* completions);
  // While it is not OK, pushes are refused with it.
  void SetJournalError(const absl::Status& trouble) { journal_error_ = trouble; }
  void FailHeldAnswers(const absl::Status& why, Completions* completions) {
    admission_.FailHeldAnswers(why, completions);
  }
  // An checkpoint is to be taken as soon as no step is being made. NOT_INITIALIZED if there is
  // nothing to be taken.
  absl::Status RequestCheckpoint();
  // All of it but the parameters' and the slots' values. Only while no step is being made.
  ShardCheckpoint Checkpoint() const;

  // Shard's methods of these names.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener,
                               Completions* completions);
  absl::StatusOr<Step> Heartbeat(SessionId session);
  void ConnectionLost(SessionId session);
  absl::StatusOr<Step> Leave(SessionId session, const Results& results);
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  absl::Status Evict(const std::string& worker, Completions* completions);
  void Drain(Completions* completions);
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session);
  void BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                 std::function<void()> cancel, Completions* completions);
  void AbandonPush(const PendingPush& push, Abandoned why, Completions* completions);
  PullId Pull(const PullRequest& request, PullCallback done, Completions* completions);
  bool CancelPull(PullId id) { return pulls_.Cancel(id); }

  // Ends leases and waits that are over.
  void Tick(Completions* completions);

  // A push has come to its end; its turn comes with DecideNext().
  void Queue(Arrival arrival);

  // Judges what was queued, and tells what to do next. What a step boundary changes, and the end of
  // training, are found here: call it until it is idle, one caller at a time.
  NextAction DecideNext(Completions* completions);

  // The work was done: the contribution is in the sum; the step is made of it.
  void OnAccumulated(const Contribution& contribution, Completions* completions);
  void Applied(std::shared_ptr<Snapshot> next, Completions* completions);

  // Makes the parameters that training starts from, unless there are some. Returns whether it did.
  bool Initialize(std::shared_ptr<Snapshot> first, Completions* completions);
  void CountReceived(uint64_t bytes) { bytes_received_ += bytes; }

  ShardStatus Describe() const;
  Step step() const { return step_.number(); }
  // Null before the first worker joined.
  SnapshotStore* snapshots() const { return snapshots_.get(); }
  const Roster& roster() const { return roster_; }
  const Results& results() const { return results_; }

 private:
  void OpenModel();
  void RestoreTerms(const Consistency& consistency, absl::optional<double> learning_rate);
  void AdoptTerms(Completions* completions);
  void EndOverdueWait(Completions* completions);
  void Settle(Completions* completions);
  void ServePulls(Completions* completions);
  void AnswerMade(Completions* completions);
  absl::StatusOr<PullTurn> TurnOf(const PullRequest& request, const StepProgress& progress) const;
  bool initialized() const { return snapshots_ != nullptr && snapshots_->latest() != nullptr; }
  double LearningRate() const;
  Phase phase() const;

  const ShardOptions options_;
  const Clock& clock_;
  const absl::Time created_;
  IncarnationHistory incarnations_;
  uint64_t lost_steps_ = 0;  // of earlier lives
  RuntimeSettings settings_;
  Roster roster_;
  PullQueue pulls_;
  CurrentStep step_;
  PushAdmission admission_;
  bool draining_ = false;
  absl::Status journal_error_;
  absl::optional<Step> durable_;  // see HoldUntilDurable()
  bool checkpoint_requested_ = false;
  uint64_t bytes_received_ = 0;
  StepTimes times_;
  Results results_;
  Consistency own_consistency_;               // that the earlier life was started with
  std::unique_ptr<SnapshotStore> snapshots_;  // made when the model is known
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_COORDINATOR_H_
