#include "server/admission/gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// The answer to a repeated push.
PushOutcome Repeat(const PushOutcome& first) {
  PushOutcome outcome = first;
  outcome.first_disposition = first.disposition;
  outcome.disposition = Disposition::kDuplicate;
  return outcome;
}

absl::Status TooOld(const SessionRecord& record, const PushHeader& header) {
  return MakeError(
      Reason::kSequenceTooOld,
      absl::StrCat(
          "push ", header.sequence.value(), " comes after push ", record.last_sequence.value(),
          " was answered, and its own answer is not stored any more; send later pushes only"));
}

absl::Status FromTheFuture(const PushHeader& header, Step step) {
  return MakeError(
      Reason::kFutureStep,
      absl::StrCat("the gradient is of step ", header.step.value(), ", the server is at step ",
                   step.value(), "; pull parameters before you compute a gradient"));
}

absl::Status ContributedAlready(const SessionRecord& record, Step step) {
  return MakeError(Reason::kAlreadyContributed,
                   absl::StrCat(Shown(record.worker), " has contributed to step ", step.value(),
                                "; pull step ", step.value() + 1, " first"));
}

absl::Status TooFarAhead(const SessionRecord& record, uint64_t slowest) {
  return MakeError(
      Reason::kAheadOfOthers,
      absl::StrCat(Shown(record.worker), " has made ", record.clock, " pushes, the slowest worker ",
                   slowest, "; pull with `after` first, which waits for it"));
}

}  // namespace

Gate::Verdict Gate::Open(const absl::StatusOr<PushHeader>& header, const StepProgress& progress,
                         absl::Time now) {
  ++counters_.received;
  const Verdict verdict = header.ok() ? Judge(*header, progress, now) : header.status();
  Enter(verdict);
  return verdict;
}

Gate::Verdict Gate::Admit(const PushHeader& header, const StepProgress& progress, absl::Time now) {
  const Verdict verdict = Judge(header, progress, now);
  --counters_.in_progress;
  Enter(verdict);
  return verdict;
}

PushOutcome Gate::Count(const PushHeader& header, Disposition disposition, Step judged_at,
                        Step step, absl::Time now) {
  --counters_.in_progress;
  ++(disposition == Disposition::kSkipped ? counters_.skipped : counters_.accepted);
  const PushOutcome outcome =
      Answer(**sessions_.Find(header.session), header, disposition, judged_at, step, now);
  if (disposition != Disposition::kSkipped) staleness_.Enter(outcome.staleness);
  return outcome;
}

void Gate::LeaveOut(uint32_t gradients, uint32_t refused) {
  counters_.accepted -= gradients;
  counters_.rejected += refused;
  counters_.skipped += gradients - refused;
}

void Gate::Abandon(Abandoned why) {
  --counters_.in_progress;
  ++(why == Abandoned::kRejected ? counters_.rejected : counters_.aborted);
}

// The rules of a push, in order.
Gate::Verdict Gate::Judge(const PushHeader& header, const StepProgress& progress, absl::Time now) {
  const auto found = sessions_.FindWorker(header.session);
  if (!found.ok()) return found.status();
  const SessionRecord& record = **found;
  const auto repeated = record.answers.find(header.sequence);
  if (repeated != record.answers.end())
    return absl::make_optional(Repeat(repeated->second.outcome));
  if (header.sequence <= record.last_sequence) return TooOld(record, header);
  const bool lost = !incarnations_.Contains(header.incarnation, header.step);
  if (!lost && header.step > progress.step) return FromTheFuture(header, progress.step);
  const bool before_its_time = policy_.OncePerStep() && header.step < record.active_from;
  const bool stale =
      lost || before_its_time || !policy_.Admits(progress.step.value() - header.step.value());
  if (stale) {
    return absl::make_optional(
        Answer(record, header, Disposition::kStaleDropped, progress.step, progress.step, now));
  }
  if (policy_.OncePerStep() && record.contributed == progress.step) {
    return ContributedAlready(record, progress.step);
  }
  if (policy_.IsAhead({false, record.clock}, progress)) {
    return TooFarAhead(record, progress.slowest);
  }
  return absl::optional<PushOutcome>();
}

// Makes the first answer to a push and stores it for repeated pushes.
PushOutcome Gate::Answer(const SessionRecord& record, const PushHeader& header,
                         Disposition disposition, Step judged_at, Step step, absl::Time now) {
  PushOutcome outcome;
  outcome.disposition = disposition;
  outcome.step = step;
  outcome.incarnation = incarnations_.current();
  // A gradient of another incarnation may have a step that is not reached yet.
  outcome.staleness = judged_at.value() - std::min(judged_at, header.step).value();
  StoredAnswer answer = {outcome, absl::nullopt};
  // Where no step waits for particular workers, a gradient that is left out is part of no step.
  const bool left_out = disposition == Disposition::kSkipped && !policy_.OncePerStep();
  if (disposition != Disposition::kStaleDropped && !left_out) answer.part_of = judged_at;
  const uint64_t slowest = sessions_.census().slowest_clock();
  sessions_.Change(record, [&](SessionRecord& answered) {
    // Others wait for it again, but not until it has caught up.
    if (answered.excused) answered.clock = std::max(answered.clock, slowest);
    answered.excused = false;
    answered.Remember(header, answer, now);
  });
  return outcome;
}

void Gate::Enter(const Verdict& verdict) {
  if (!verdict.ok()) {
    // ABORTED means that the session ended; other errors mean that the push is invalid.
    ++(absl::IsAborted(verdict.status()) ? counters_.aborted : counters_.rejected);
  } else if (!verdict->has_value()) {
    ++counters_.in_progress;
  } else {
    const bool stale = (*verdict)->disposition == Disposition::kStaleDropped;
    ++(stale ? counters_.stale : counters_.duplicate);
  }
}

}  // namespace sluice
