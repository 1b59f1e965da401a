// Makes all decisions of a shard and none of its arithmetic: who takes part, which pushes count,
// when a step is complete, which workers may continue, and when the operator's changes take effect.
//
// It is a deterministic state machine. JobParts has what it knows; the coordinator has the order of
// events. It has no thread and no lock of its own, and reads only the clocks that it is given.
// JobState owns it, and the mutex with which it is called. Shard, LeaderStore and StepLoop report
// each event. StepLoop asks DecideNext() for work, does the work outside the mutex, and reports the
// result. A method that takes Completions adds the callbacks to run after the mutex is released.

#ifndef SLUICE_SERVER_SHARD_COORDINATOR_H_
#define SLUICE_SERVER_SHARD_COORDINATOR_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/pull_gate.h"
#include "server/admission/push_admission.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/step_norms.h"
#include "server/shard/job_parts.h"
#include "server/shard/next_action.h"
#include "server/state/completions.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized.
class Coordinator {
 public:
  // Both outlive it. `clock` is the one that `job` was made with.
  Coordinator(JobParts& job, const Clock& clock);

  // From now on no push is answered as counted before its step is durable.
  void BeginJournal();
  void OnDurable(Step step, Completions* completions);
  // Refuses new pushes with `error`, unless it is OK.
  void SetJournalError(const absl::Status& error) { journal_error_ = error; }
  void EndJournal(const absl::Status& why, Completions* completions);
  // No step is made any more: answers all pushes that have arrived.
  void FailPushes(const absl::Status& why, Completions* completions);

  // See Shard::Drain() and Suspend(), also for what Suspend() returns. Nothing happens if `why` is
  // OK, or if it was called before.
  void GoDown(const absl::Status& why, Completions* completions);
  bool Suspend(const absl::Status& why, Completions* completions);
  PushId BeginPush(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                   std::function<void()> cancel, Completions* completions);
  // The session's admitted push broke off.
  void AbandonPush(SessionId session, Abandoned why, Completions* completions);
  PullId Pull(const PullRequest& request, PullCallback done, Completions* completions);

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

  ShardStatus Describe() const;

 private:
  void AdoptSettings(Completions* completions);
  void Settle(Completions* completions);
  void ServePulls(Completions* completions);

  JobParts& job_;
  const Clock& clock_;
  const absl::Time created_;
  PullGate pull_gate_;
  bool applying_ = false;
  absl::Status journal_error_;
  StepTimes times_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_COORDINATOR_H_
