// The answers of pushes that are part of a step, and wait for it: until it is published and, with a
// journal, durable. A worker that is told that a step was applied must find it published, and one
// that is told that its push counts must not lose it.

#ifndef SLUICE_SERVER_ADMISSION_HELD_ANSWERS_H_
#define SLUICE_SERVER_ADMISSION_HELD_ANSWERS_H_

#include <functional>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/state/completions.h"

namespace sluice {

// Called exactly once, outside all locks.
using AnswerCallback = std::function<void(const absl::StatusOr<PushOutcome>&)>;

struct HeldAnswer {
  SessionId session;
  AnswerCallback tell;
  PushOutcome outcome;
};

// Externally synchronized; JobParts owns it, and PushAdmission adds to it.
class HeldAnswers {
 public:
  // There is a journal: answers also wait until their step is durable. `latest`: the step that is
  // the latest, and durable.
  void BeginJournal(Step latest);
  bool has_journal() const { return durable_.has_value(); }
  // With a journal: the latest step that is both published and durable.
  Step settled() const { return settled_; }

  // Holds an answer until that step is settled. If the journal has ended, it fails at once.
  void Add(Step step, HeldAnswer answer, Completions* completions);
  // All steps up to this one are published. Gives the answers that waited for that.
  void OnPublished(Step step, Completions* completions);
  // All steps up to this one are durable. Gives the answers that waited for that.
  void OnDurable(Step step, Completions* completions);

  // Answers with `why` what is held for `step` and `fails` returns true for; it may change the
  // outcome of the others.
  void FailSome(Step step, absl::FunctionRef<bool(HeldAnswer&)> fails, const absl::Status& why,
                Completions* completions);
  // Answers with `why` all that is held. The pushes have counted: one that is repeated is held
  // again.
  void FailAll(const absl::Status& why, Completions* completions);
  // The journal, if there is one, has ended: fails all that is held, and all that is added later.
  void EndJournal(const absl::Status& why, Completions* completions);

  std::vector<SessionId> Sessions() const;  // of the answers; one may be named twice

 private:
  void Settle(Completions* completions);

  std::multimap<Step, HeldAnswer> held_;
  Step published_;
  absl::optional<Step> durable_;  // absent without a journal
  Step settled_;                  // the smaller of both
  absl::Status ended_;            // why the journal has ended, or OK
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_HELD_ANSWERS_H_
