// Which pushes count: session → sequence → staleness, and the counters of what became of each.
//
// A push passes the gate more than once: Open() at its header, so that stale bytes are refused
// before they are read, and Admit() when it may come in, and when it is whole and its turn has
// come, since the step may have moved. It leaves the counters' in_progress exactly once: refused by
// either, by Abandon(), or by Count().

#ifndef SLUICE_SERVER_ADMISSION_GATE_H_
#define SLUICE_SERVER_ADMISSION_GATE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/session_table.h"
#include "server/policy/staleness_policy.h"
#include "server/state/incarnation_history.h"
#include "server/state/push_counters.h"

namespace sluice {

// Why a push ends before it is whole.
enum class Abandoned { kRejected, kAborted };

// Externally synchronized.
class Gate {
 public:
  // An error, an outcome the push has already, or nothing: it may go on.
  using Verdict = absl::StatusOr<absl::optional<PushOutcome>>;

  // All outlive the gate; the policy and the incarnations may change.
  Gate(const StalenessPolicy& policy, const IncarnationHistory& incarnations,
       SessionTable& sessions)
      : policy_(policy), incarnations_(incarnations), sessions_(sessions) {}

  // Judges a header, or what the wire found wrong with it, at that point of the step under way.
  Verdict Open(const absl::StatusOr<PushHeader>& header, const StepProgress& progress,
               absl::Time now);

  // Judges an open push again.
  Verdict Admit(const PushHeader& header, const StepProgress& progress, absl::Time now);

  // Enters an open push that was just admitted: its gradient is part of the step after `judged_at`,
  // or, if `disposition` is kSkipped, left out of it. The outcome tells `step`, the server's by
  // then.
  PushOutcome Count(const PushHeader& header, Disposition disposition, Step judged_at, Step step,
                    absl::Time now);

  // Ends an open push that will not be admitted.
  void Abandon(Abandoned why);

  const PushCounters& counters() const { return counters_; }
  // Of the pushes that counted.
  const StalenessHistogram& staleness() const { return staleness_; }

 private:
  Verdict Judge(const PushHeader& header, const StepProgress& progress, absl::Time now);
  PushOutcome Answer(SessionRecord& record, const PushHeader& header, Disposition disposition,
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
