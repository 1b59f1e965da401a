// Which pushes count: session → sequence → staleness, and the books of what became of each.
//
// A push passes the gate twice: Open() at its header, so that stale bytes are refused before they
// are read, and Admit() when it is whole and its turn has come, since the step may have moved. It
// leaves the books' in_progress exactly once: refused by either, by Abandon(), or by Count().

#ifndef SLUICE_SERVER_GATE_H_
#define SLUICE_SERVER_GATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/exchange.h"
#include "common/ids.h"
#include "server/push_books.h"
#include "server/session_table.h"
#include "server/staleness_policy.h"

namespace sluice {

// Why a push ends before it is whole.
enum class Abandoned { kRejected, kAborted };

// Externally synchronized.
class Gate {
 public:
  // An error, an outcome the push has already, or nothing: it may go on.
  using Verdict = absl::StatusOr<absl::optional<PushOutcome>>;

  // `sessions` outlives the gate.
  Gate(const StalenessPolicy& policy, Incarnation incarnation, SessionTable& sessions)
      : policy_(policy), incarnation_(incarnation), sessions_(sessions) {}

  // Judges a header, or what the wire found wrong with it, at server step `step`.
  Verdict Open(const absl::StatusOr<PushHeader>& header, Step step, absl::Time now);

  // Judges an open push again.
  Verdict Admit(const PushHeader& header, Step step, absl::Time now);

  // Enters the push that was admitted last as counted: its gradient is part of the step after
  // `judged_at`. The outcome tells `step`, the server's by now.
  PushOutcome Count(const PushHeader& header, Disposition disposition, Step judged_at, Step step,
                    absl::Time now);

  // The worker whose push was admitted last, even if its session has ended or was replaced since;
  // null if another process has taken its name.
  SessionRecord* contributor() { return sessions_.FindProcess(contributor_, contributor_process_); }

  // Ends an open push that will not be admitted.
  void Abandon(Abandoned why);

  const PushBooks& books() const { return books_; }

 private:
  Verdict Judge(const PushHeader& header, Step step, absl::Time now);
  PushOutcome Answer(SessionRecord* record, const PushHeader& header, Disposition disposition,
                     Step judged_at, Step step, absl::Time now);
  void Enter(const Verdict& verdict);

  const StalenessPolicy policy_;
  const Incarnation incarnation_;
  SessionTable& sessions_;
  PushBooks books_;
  std::string contributor_;
  ProcessNonce contributor_process_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_GATE_H_
