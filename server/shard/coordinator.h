// Makes all decisions of a shard and none of its arithmetic: who takes part, which pushes count,
// when a step is complete, which workers may continue, and when the operator's changes take effect.
//
// It is a deterministic state machine that owns Roster, PushAdmission, CurrentStep, PullQueue and
// StateRequests.
// It has no thread, no lock and no clock of its own. JobState owns it, and the mutex with which it
// is called. Shard, PushCalls and StepLoop report each event. StepLoop asks DecideNext() for work,
// does the work outside the mutex, and reports the result. A method that takes Completions adds the
// callbacks to run after the mutex is released.

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
#include "server/admission/state_requests.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/step_norms.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/policy/staleness_rules.h"
#include "server/replica/pull_result.h"
#include "server/shard/next_action.h"
#include "server/shard/running_clock.h"
#include "server/shard/shard_watch.h"
#include "server/state/completions.h"
#include "server/state/incarnation_history.h"
#include "server/state/job_results.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"
#include "server/state/step_journal.h"

namespace sluice {

// Externally synchronized.
class Coordinator {
 public:
  // The other arguments are those of Shard. `release` is called by the methods that take
  // Completions.
  Coordinator(const ShardOptions& options, const Clock& clock, JobListener owner,
              PullRelease release);

  // Recovery: Shard's methods of these names. Before the first Join().
  void Restore(const ShardCheckpoint& checkpoint);
  void Replay(const StepRecord& record);
  void BeginIncarnation(const IncarnationBegins& incarnations);
  void set_lost_steps(uint64_t steps) {
    lost_steps_ = steps;
    if (steps > 0) roster_.NoteLostSteps();
  }

  // The journal's record of the step that `action` applies. StepLoop and the stripe complete it.
  StepRecord MakeStepRecord(const NextAction& action) const;
  // From now on no push is answered as counted before its step is durable.
  void HoldUntilDurable();
  void OnDurable(Step step, Completions* completions);
  // Refuses new pushes with `error`, unless it is OK.
  void SetJournalError(const absl::Status& error) { journal_error_ = error; }
  void FailHeldAnswers(const absl::Status& why, Completions* completions);
  // No step is made any more: answers all pushes that have arrived.
  void FailPushes(const absl::Status& why, Completions* completions);
  // Lets DecideNext() return a checkpoint as its next action. NOT_INITIALIZED if there are no
  // parameters.
  absl::Status RequestCheckpoint();
  // From now on, the end of training is saved before it is announced. DecideNext() then returns a
  // checkpoint of the end. Call OnEndSaved() with the step of that checkpoint, or with an error.
  // After an error the end is announced without being saved.
  void SaveEnd() { end_ = roster_.finished() ? End::kSaved : End::kUnsaved; }
  void OnEndSaved(const absl::StatusOr<Step>& saved);
  // The end is from now on announced without being saved. No effect if it is saved already.
  void ForgetEnd() {
    if (end_ != End::kSaved) end_ = End::kNotSaved;
  }
  // Whether training is over, and its end is still to be saved.
  bool AwaitsEnd() const;
  // The checkpoint, except the parameters and the optimizer's state. Call it while no step is being
  // applied.
  ShardCheckpoint Checkpoint() const;

  // Shard's methods of these names.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener,
                               Completions* completions);
  absl::StatusOr<Step> Heartbeat(SessionId session,
                                 const absl::optional<StepMeasurement>& measurement);
  void ConnectionLost(SessionId session);
  absl::StatusOr<Step> Leave(SessionId session, const Farewell& farewell, Completions* completions);
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency,
                                      const absl::optional<Consistency>& expected);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  ReductionOrder OrderFor(ConsistencyMode mode) const { return settings_.OrderFor(mode); }
  absl::Status Evict(const std::string& worker, Completions* completions);
  // See Shard::Drain() and Suspend(). Nothing happens if `why` is OK, or if it was called before.
  void GoDown(const absl::Status& why, Completions* completions);
  bool Suspend(const absl::Status& why, Completions* completions);
  // Returns the answer, or nothing if the parameters are wanted.
  absl::StatusOr<absl::optional<InitializeOutcome>> BeginInitialize(SessionId session) const;
  PushId NameOffer() { return admission_.NextId(); }
  PushId BeginPush(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                   std::function<void()> cancel, Completions* completions);
  bool CancelPush(PushId id) { return admission_.Cancel(id); }
  // The session's admitted push broke off, after so many bytes of its payload.
  void AbandonPush(SessionId session, uint64_t bytes, Abandoned why, Completions* completions);
  PullId Pull(const PullRequest& request, PullCallback done, Completions* completions);
  absl::optional<PullRequest> CancelPull(PullId id) { return pulls_.Cancel(id); }

  // Ends leases and waits that are over.
  // `silent`: another server is. The time since the last tick then holds up no step.
  void Tick(bool silent, Completions* completions);

  // Queues a push whose payload has arrived. DecideNext() judges it.
  void Queue(Arrival arrival);

  // Judges queued pushes, adopts changed settings at a step boundary, announces the end of
  // training, and returns what to do next. One thread at a time calls it repeatedly until it
  // returns idle.
  NextAction DecideNext(Completions* completions);

  // The step that is being applied is made without its gradients; see PushAdmission::LeaveOut().
  void LeaveOut(const absl::Status& why, Completions* completions);

  // The action is done: the contribution is in the sum; the step is applied and published. If
  // training diverges, the job may end with it.
  void OnAccumulated(const Contribution& contribution, Completions* completions);
  void OnApplied(const StepNorms& norms, Completions* completions);

  // The initial parameters are published. There were none.
  void OnInitialized(Completions* completions);
  bool initialized() const { return initialized_; }
  void CountReceived(uint64_t bytes) { bytes_received_ += bytes; }

  ShardStatus Describe() const;
  StateRequests& states() { return states_; }  // DecideNext() follows each change
  Step step() const { return step_.number(); }
  const Roster& roster() const { return roster_; }
  const StalenessRules& staleness_rules() const { return rules_; }
  const Results& results() const { return results_.all(); }

 private:
  bool has_model() const { return roster_.layout() != nullptr; }  // a worker has joined
  void TakePolicy();  // once the model is known, and when the policy has changed
  void RestoreSettings(const Consistency& consistency, absl::optional<double> learning_rate);
  void AdoptSettings(Completions* completions);
  bool BeginsToSaveEnd();
  void NoteWhoIsServed(bool silent);
  void EndOverdueWait(Completions* completions);
  void Settle(Completions* completions);
  bool draining() const { return !serving_.ok(); }  // also when suspended
  bool suspended() const { return draining() && ReasonOf(serving_) == Reason::kNone; }
  bool finished() const { return roster_.finished() || end_ == End::kSaving; }
  bool ends() const { return (draining() && !suspended()) || finished(); }
  void ServePulls(Completions* completions);
  void AnswerPublished(Completions* completions);
  absl::StatusOr<PullTurn> TurnOf(const PullRequest& request, const StepProgress& progress) const;
  double LearningRate() const;
  Phase phase() const;

  const ShardOptions options_;
  const Clock& clock_;
  const absl::Time created_;
  RunningClock running_;  // times leases and waits
  absl::Time ticked_;     // when Tick() was last called
  bool applying_ = false;
  IncarnationHistory incarnations_;
  uint64_t lost_steps_ = 0;  // of earlier incarnations
  RuntimeSettings settings_;
  Roster roster_;
  PullQueue pulls_;
  StateRequests states_;
  CurrentStep step_;
  PushAdmission admission_;
  absl::Status serving_;  // OK, or the error for all who come while the server goes down
  absl::Status journal_error_;
  absl::optional<Step> durable_;  // see HoldUntilDurable()
  bool checkpoint_requested_ = false;
  enum class End { kNotSaved, kUnsaved, kSaving, kSaved };
  End end_ = End::kNotSaved;  // kNotSaved: the end is never saved
  bool end_was_observed_ = true;
  uint64_t bytes_received_ = 0;
  StepTimes times_;
  JobResults results_;
  MeasurementStatus measured_;
  Consistency own_consistency_;  // with which the earlier incarnation was started
  bool initialized_ = false;     // there are parameters
  StalenessRules rules_;         // none until the model is known
  ShardWatch watch_;             // looks at the others
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_COORDINATOR_H_
