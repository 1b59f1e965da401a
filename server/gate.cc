#include "server/gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {

Gate::Verdict Gate::Open(const absl::StatusOr<PushHeader>& header, Step step, absl::Time now) {
  ++books_.received;
  const Verdict verdict = header.ok() ? Judge(*header, step, now) : header.status();
  Enter(verdict);
  return verdict;
}

Gate::Verdict Gate::Admit(const PushHeader& header, Step step, absl::Time now) {
  const Verdict verdict = Judge(header, step, now);
  --books_.in_progress;
  Enter(verdict);
  if (verdict.ok() && !verdict->has_value()) {
    const SessionRecord& record = **sessions_.Find(header.session);
    contributor_ = record.worker;
    contributor_process_ = record.process_nonce;
  }
  return verdict;
}

PushOutcome Gate::Count(const PushHeader& header, Disposition disposition, Step judged_at,
                        Step step, absl::Time now) {
  --books_.in_progress;
  ++books_.accepted;
  return Answer(contributor(), header, disposition, judged_at, step, now);
}

void Gate::Abandon(Abandoned why) {
  --books_.in_progress;
  ++(why == Abandoned::kRejected ? books_.rejected : books_.aborted);
}

// The rules of a push, in order.
Gate::Verdict Gate::Judge(const PushHeader& header, Step step, absl::Time now) {
  const auto found = sessions_.FindWorker(header.session);
  if (!found.ok()) return found.status();
  SessionRecord& record = **found;
  const auto repeated = record.answers.find(header.sequence);
  if (repeated != record.answers.end()) {
    PushOutcome outcome = repeated->second;
    outcome.first_disposition = outcome.disposition;
    outcome.disposition = Disposition::kDuplicate;
    return absl::make_optional(outcome);
  }
  if (header.sequence <= record.last_sequence) {
    return MakeError(Reason::kSequenceTooOld,
                     absl::StrCat("push ", header.sequence.value(), " comes after push ",
                                  record.last_sequence.value(),
                                  " was answered, and its own answer is not kept"));
  }
  if (header.incarnation != incarnation_) {
    return absl::make_optional(
        Answer(&record, header, Disposition::kStaleDropped, step, step, now));
  }
  if (header.step > step) {
    return MakeError(Reason::kFutureStep,
                     absl::StrCat("the gradient is of step ", header.step.value(),
                                  ", the server is at step ", step.value()));
  }
  if (!policy_.Admits(step.value() - header.step.value())) {
    return absl::make_optional(
        Answer(&record, header, Disposition::kStaleDropped, step, step, now));
  }
  if (policy_.OncePerStep() && record.contributed == step) {
    return MakeError(Reason::kAlreadyContributed,
                     absl::StrCat(record.worker, " has contributed to step ", step.value(),
                                  "; pull step ", step.value() + 1, " first"));
  }
  return absl::optional<PushOutcome>();
}

// Makes the first answer to a push and keeps it for repetitions.
PushOutcome Gate::Answer(SessionRecord* record, const PushHeader& header, Disposition disposition,
                         Step judged_at, Step step, absl::Time now) {
  PushOutcome outcome;
  outcome.disposition = disposition;
  outcome.step = step;
  outcome.incarnation = incarnation_;
  // A gradient of another incarnation may name any step.
  outcome.staleness = judged_at.value() - std::min(judged_at, header.step).value();
  if (record != nullptr) record->Remember(header, outcome, now);
  return outcome;
}

void Gate::Enter(const Verdict& verdict) {
  if (!verdict.ok()) {
    // A session that ended, rather than a push that is wrong.
    ++(absl::IsAborted(verdict.status()) ? books_.aborted : books_.rejected);
  } else if (!verdict->has_value()) {
    ++books_.in_progress;
  } else {
    const bool stale = (*verdict)->disposition == Disposition::kStaleDropped;
    ++(stale ? books_.stale : books_.duplicate);
  }
}

}  // namespace sluice
