// The path of a push from its header to its answer: gate, in-flight limit, gate, contributions.
//
// 1. Begin() asks the gate about the header. A push that may continue waits at the in-flight limit,
//    until Settle() admits it or Cancel() ends it.
// 2. Settle() admits waiting pushes and calls their `start`. The stripe makes room for the
//    gradient, and the rpc layer fills it with chunks.
// 3. Queue() is told that the push is complete, or the error found in its payload. Abandon() ends a
//    push that broke off.
// 4. TakeArrivals() asks the gate again and adds accepted gradients to the current step's
//    contributions. TakeDropped() names the others, which the stripe need not keep. Release() frees
//    the place at the limit when a gradient is accumulated.
// 5. The push is answered. An answer APPLIED waits until the step is published. With a journal, the
//    answer to any push that is part of a step waits until that step is durable. HeldAnswers has
//    these. Other answers are given at once.
// 6. If a step's result is not finite, LeaveOut() leaves its gradients out. The answers that are
//    held for the step become SKIPPED or, without --skip-not-finite, the error, and the push then
//    counts as rejected. All its other gradients count as skipped.
//
// The coordinator calls Settle() after every change.

#ifndef SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_
#define SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/current_step.h"
#include "server/admission/gate.h"
#include "server/admission/held_answers.h"
#include "server/admission/in_flight_limit.h"
#include "server/aggregation/pending_push.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/state/completions.h"
#include "server/state/incarnation_history.h"
#include "server/state/shard_options.h"

namespace sluice {

// A push whose payload has arrived. The stripe keeps it, unless it is refused.
struct Arrival {
  PushId push;
  PushHeader header;  // with the summary, if there was one
  PushCallback done;
  absl::Status refused;  // the error found in the payload, or OK
};

// Externally synchronized, together with the objects that it refers to.
class PushAdmission {
 public:
  // The references outlive it.
  PushAdmission(const ShardOptions& options, const RuntimeSettings& settings,
                const IncarnationHistory& incarnations, Roster& roster, CurrentStep& step,
                HeldAnswers& answers, const Clock& clock);

  // Sets the in-flight limit: when the model is known, before the first push, and when the policy
  // has changed.
  void LimitInFlight();

  // Takes a new push. `start` is called when the push is refused, answered or admitted; `cancel` as
  // described in in_flight_limit.h. Returns the id of a push that waits, else 0.
  PushId Begin(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
               std::function<void()> cancel, Completions* completions);

  // Ends a push that waits: its stream has ended, and `start` is not called. Returns false if it
  // does not wait any more.
  bool Cancel(PushId push);
  // An id for an offer of parameters, which skips admission.
  PushId NextId() { return last_id_ = last_id_.Next(); }
  bool Waits(PushId push) const { return in_flight_ != nullptr && in_flight_->Waits(push); }

  // Ends the session's admitted push, which is not complete.
  void Abandon(SessionId session, Abandoned why);

  // Queues an admitted push for TakeArrivals().
  void Queue(Arrival arrival);

  // Adds queued pushes to the current step until it is complete.
  void TakeArrivals(Completions* completions);

  // The pushes that came with a gradient since the last call, and do not count.
  std::vector<PushId> TakeDropped() { return std::exchange(dropped_, {}); }

  // Frees the place of a push whose gradient was accumulated.
  void Release(SessionId session) { in_flight_->Release(session); }

  // The current step is made without its gradients, because its result would not be finite; `why`
  // is that error. The gradients then count as skipped. With skip_not_finite, held answers become
  // SKIPPED. Without it, held answers become `why`, and these pushes count as rejected.
  void LeaveOut(const absl::Status& why, Completions* completions);

  // No step is made any more: answers with `why` all pushes that are whole.
  void FailAll(const absl::Status& why, Completions* completions);

  // Ends the pushes of sessions that are not open and, unless `serving` is OK, all waiting pushes,
  // with that error: the server drains. Then admits waiting pushes up to the in-flight limit.
  void Settle(const absl::Status& serving, Completions* completions);

  // The sessions whose gradients were refused or skipped since the last call, because they are not
  // finite. A session may be named twice.
  std::vector<SessionId> TakeNotFinite() { return std::exchange(not_finite_, {}); }

  // The sessions whose arriving push has received bytes since the last call.
  std::vector<SessionId> TakeHeard();
  // The sessions that wait for this server: for the in-flight limit, for their gradient to be
  // accumulated, or for their step to be durable. A session may be named twice.
  std::vector<SessionId> Served() const;

  // Whether no push is in flight or waits.
  bool empty() const { return in_flight_ == nullptr || in_flight_->empty(); }
  const InFlightLimit* in_flight() const { return in_flight_.get(); }
  const Gate& gate() const { return gate_; }

 private:
  void Answer(const PushHeader& header, const PushOutcome& outcome, AnswerCallback tell,
              Completions* completions);
  void Take(Arrival arrival, Completions* completions);
  void Enter(Arrival arrival, Completions* completions);
  void EndPushes(const absl::Status& serving, Completions* completions);
  void LetIn(const Arriving& push, Completions* completions);

  const ShardOptions& options_;
  const RuntimeSettings& settings_;
  Roster& roster_;
  CurrentStep& step_;
  HeldAnswers& answers_;
  const Clock& clock_;
  Gate gate_;
  std::unique_ptr<InFlightLimit> in_flight_;  // null before LimitInFlight()
  uint64_t ended_sessions_ = 0;               // when EndPushes() last looked for their pushes
  std::vector<SessionId> not_finite_;
  std::vector<PushId> dropped_;
  PushId last_id_;
  std::deque<Arrival> arrivals_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_
