// The way of a push from its header into the step: gate, room, and the gate again.
//
// Whoever changes what it refers to calls Settle() afterwards, which lets in and ends what can be.

#ifndef SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_
#define SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "server/admission/current_step.h"
#include "server/admission/gate.h"
#include "server/admission/in_flight_limit.h"
#include "server/aggregation/pending_push.h"
#include "server/membership/roster.h"
#include "server/policy/runtime_settings.h"
#include "server/state/completions.h"
#include "server/state/incarnation_history.h"
#include "server/state/shard_status.h"

namespace sluice {

// A push that has come to its end: whole, or, with `refused`, found to be wrong.
struct Arrival {
  std::unique_ptr<PendingPush> push;
  PushCallback done;
  absl::Status refused;
};

// Externally synchronized, with all it refers to.
class PushAdmission {
 public:
  // All references outlive it.
  PushAdmission(const ShardOptions& options, const RuntimeSettings& terms,
                const IncarnationHistory& incarnations, Roster& roster, CurrentStep& step,
                const Clock& clock);

  // The model is known: so many vectors may be on their way in.
  void Open(uint32_t vectors) { in_flight_ = std::make_unique<InFlightLimit>(vectors); }

  // Judges a header; a push that may go on waits for its turn to come in.
  void Begin(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
             std::function<void()> cancel, Completions* completions);

  // A push that was let in ends before it is whole.
  void Abandon(const PendingPush& push, Abandoned why);

  // A push that was let in has come to its end, and waits for its turn to be taken.
  void Queue(Arrival arrival);

  // Takes what was queued into the step, until it is complete.
  void TakeArrivals(Completions* completions);

  // The push's gradient was added up.
  void Release(SessionId session) { in_flight_->Release(session); }

  // From now on no answer tells that a push counts before its step is kept.
  void HoldUntilDurable(Step kept) { kept_ = kept; }

  // The steps up to `step` are published, and kept if they have to be: answers those whose pushes
  // are part of them.
  void AnswerUpTo(Step step, Completions* completions);

  // Nothing will be kept any more: answers those that wait for it, and all that would.
  void FailHeldAnswers(const absl::Status& why, Completions* completions);

  // Ends the pushes of sessions that are over, and, if the server drains, those that wait; lets in
  // those for which there is room.
  void Settle(bool draining, Completions* completions);

  // Whether no push is on its way in.
  bool empty() const { return in_flight_ == nullptr || in_flight_->empty(); }
  const InFlightLimit* room() const { return in_flight_.get(); }
  const Gate& gate() const { return gate_; }

 private:
  using Tell = std::function<void(const absl::StatusOr<PushOutcome>&)>;
  struct Held {
    Tell tell;
    PushOutcome outcome;
  };

  void Answer(const PushHeader& header, const PushOutcome& outcome, Tell tell,
              Completions* completions);
  void Hold(Step step, Held held, Completions* completions);
  absl::optional<Step> KeptWith(const PushHeader& header) const;
  void Take(Arrival arrival, Completions* completions);
  void Enter(Arrival arrival, Completions* completions);
  void EndPushes(bool draining, Completions* completions);
  void LetIn(const Arriving& push, Completions* completions);

  const Guards guards_;
  const RuntimeSettings& settings_;
  Roster& roster_;
  CurrentStep& step_;
  const Clock& clock_;
  Gate gate_;
  std::unique_ptr<InFlightLimit> in_flight_;  // null before Open()
  std::deque<Arrival> arrivals_;
  // Answers, by the step that has to be published, or kept, before they are given.
  std::multimap<Step, Held> held_;
  absl::optional<Step> kept_;  // the last that is; absent: none has to be
  absl::Status abandoned_;     // see FailHeldAnswers()
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_PUSH_ADMISSION_H_
