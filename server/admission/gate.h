// Decides which pushes count. It checks the session, then the sequence, then the staleness, and
// counts the result of each push.
//
// PushAdmission asks the gate up to three times for each push, because the step may have grown:
// 1. Open() at the header, so that a stale payload is never read.
// 2. Admit() when the in-flight limit admits the push.
// 3. Admit() when the push is complete and its turn has come. If it passes, Count() counts it.
// A push enters the counter `in_progress` when Open() passes it. It leaves the counter exactly
// once: when Admit() refuses or answers it, in Abandon(), or in Count().

#ifndef SLUICE_SERVER_ADMISSION_GATE_H_
#define SLUICE_SERVER_ADMISSION_GATE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/pending_push.h"
#include "server/membership/session_table.h"
#include "server/policy/staleness_policy.h"
#include "server/state/incarnation_history.h"
#include "server/state/push_counters.h"

namespace sluice {

// Externally synchronized; PushAdmission owns it.
class Gate {
 public:
  // An error; an outcome, if the push is answered now; or an empty optional, if it may continue.
  using Verdict = absl::StatusOr<absl::optional<PushOutcome>>;

  // The references outlive the gate. The policy and the incarnations may change.
  Gate(const StalenessPolicy& policy, const IncarnationHistory& incarnations,
       SessionTable& sessions)
      : policy_(policy), incarnations_(incarnations), sessions_(sessions) {}

  // Judges a new push by its header. `header` is an error if it was malformed, which counts too.
  Verdict Open(const absl::StatusOr<PushHeader>& header, const StepProgress& progress,
               absl::Time now);

  // Judges a push in progress again.
  Verdict Admit(const PushHeader& header, const StepProgress& progress, absl::Time now);

  // Counts a push that Admit() has just passed, and stores and returns its outcome. Its gradient is
  // a contribution to the step under way at `judged_at`, or is left out if `disposition` is
  // kSkipped. The outcome reports `step`, which the server has reached when the push is answered.
  PushOutcome Count(const PushHeader& header, Disposition disposition, Step judged_at, Step step,
                    absl::Time now);

  // `gradients` that were counted as accepted are left out of their step. `refused` of them now
  // count as rejected, because their senders get an error; the others count as skipped.
  void LeaveOut(uint32_t gradients, uint32_t refused);

  // Ends a push in progress that will not be admitted.
  void Abandon(Abandoned why);

  const PushCounters& counters() const { return counters_; }
  // The staleness of the pushes that counted.
  const StalenessHistogram& staleness() const { return staleness_; }

 private:
  Verdict Judge(const PushHeader& header, const StepProgress& progress, absl::Time now);
  PushOutcome Answer(const SessionRecord& record, const PushHeader& header, Disposition disposition,
                     Step judged_at, Step step, absl::Time now);
  void Enter(const Verdict& verdict);

  const StalenessPolicy& policy_;
  const IncarnationHistory& incarnations_;
  SessionTable& sessions_;
  PushCounters counters_;
  StalenessHistogram staleness_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_GATE_H_
