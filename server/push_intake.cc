#include "server/push_intake.h"

#include <utility>

#include "common/error.h"
#include "server/draining.h"

namespace sluice {

PushIntake::PushIntake(const ShardOptions& options, const JobTerms& terms, const Lineage& lineage,
                       Roster& roster, CurrentStep& step, const Clock& clock)
    : guards_(options.guards),
      terms_(terms),
      roster_(roster),
      step_(step),
      clock_(clock),
      gate_(terms.policy(), lineage, roster.sessions()) {}

void PushIntake::Begin(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                       std::function<void()> cancel, Completions* completions) {
  const Gate::Verdict verdict = gate_.Open(header, step_.Progress(), clock_.Now());
  if (!verdict.ok()) {
    completions->Add([start, status = verdict.status()] { start(status); });
  } else if (verdict->has_value()) {
    completions->Add([start, answer = **verdict] { start(PushStart{nullptr, answer}); });
  } else {
    const Rank rank = (*roster_.sessions().Find(header->session))->rank();
    room_->Wait({*header, rank, std::move(start), std::move(cancel)});
  }
}

void PushIntake::Abandon(const PendingPush& push, Abandoned why) {
  gate_.Abandon(why);
  room_->Release(push.header().session);
}

void PushIntake::Queue(Arrival arrival) {
  room_->NoteWhole(arrival.push->header().session);
  arrivals_.push_back(std::move(arrival));
}

// A step that is complete takes no more: what comes then belongs to the next.
void PushIntake::TakeArrivals(Completions* completions) {
  while (!arrivals_.empty() && !step_.IsComplete()) {
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    Take(std::move(arrival), completions);
  }
}

void PushIntake::Take(Arrival arrival, Completions* completions) {
  const PushHeader& header = arrival.push->header();
  const bool skips = guards_.skip_not_finite && ReasonOf(arrival.refused) == Reason::kNotFinite;
  absl::StatusOr<PushOutcome> answer;
  if (arrival.refused.ok() || skips) {
    const Gate::Verdict verdict = gate_.Admit(header, step_.Progress(), clock_.Now());
    if (verdict.ok() && !verdict->has_value()) {
      Enter(std::move(arrival), completions);
      return;
    }
    if (verdict.ok()) {
      answer = **verdict;
    } else {
      answer = verdict.status();
    }
  } else {
    gate_.Abandon(Abandoned::kRejected);
    answer = arrival.refused;
  }
  room_->Release(header.session);
  completions->Add([done = std::move(arrival.done), answer] { done(answer); });
}

// The push was admitted: it belongs to the step under way.
void PushIntake::Enter(Arrival arrival, Completions* completions) {
  const absl::Time now = clock_.Now();
  const Step step = step_.number();
  const PushHeader header = arrival.push->header();
  SessionRecord& record = **roster_.sessions().Find(header.session);
  // What is left out where no step waits for anybody in particular contributes to none.
  if (arrival.refused.ok() || terms_.policy().OncePerStep()) record.contributed = step;
  Disposition disposition = Disposition::kAccepted;
  if (!arrival.refused.ok()) {
    disposition = Disposition::kSkipped;
    if (terms_.policy().OncePerStep()) step_.ledger().Skip(now);
    room_->Release(header.session);
  } else {
    const uint64_t staleness = step.value() - header.step.value();
    step_.ledger().Add({std::move(arrival.push), record.rank(), staleness},
                       terms_.consistency().order, now);
    if (step_.IsComplete()) disposition = Disposition::kApplied;
  }
  const bool applied = disposition == Disposition::kApplied;
  const PushOutcome outcome =
      gate_.Count(header, disposition, step, applied ? step.Next() : step, now);
  // Who is told that a step was applied finds it published.
  Completions* const when = applied ? &applied_ : completions;
  when->Add([done = std::move(arrival.done), outcome] { done(outcome); });
}

void PushIntake::Settle(bool draining, Completions* completions) {
  if (room_ == nullptr) return;
  EndPushes(draining, completions);
  // What came in now would be stale before it is whole.
  if (terms_.policy().OncePerStep() && step_.IsComplete()) return;
  while (const absl::optional<Arriving> push = room_->LetIn(roster_.FirstMissing(step_.number()))) {
    LetIn(*push, completions);
  }
}

void PushIntake::EndPushes(bool draining, Completions* completions) {
  const SessionTable& sessions = roster_.sessions();
  room_->CancelEnded([&](SessionId session) { return sessions.IsAlive(session); }, completions);
  const auto leaves = [&](const Arriving& push) {
    return draining || !sessions.IsAlive(push.header.session);
  };
  for (const Arriving& push : room_->TakeWaiting(leaves)) {
    const absl::Status ended = sessions.Find(push.header.session).status();
    gate_.Abandon(ended.ok() ? Abandoned::kRejected : Abandoned::kAborted);
    const absl::Status why = ended.ok() ? DrainingError() : ended;
    completions->Add([start = push.start, why] { start(why); });
  }
}

void PushIntake::LetIn(const Arriving& push, Completions* completions) {
  // It may have waited long.
  const Gate::Verdict verdict = gate_.Admit(push.header, step_.Progress(), clock_.Now());
  if (!verdict.ok()) {
    room_->Release(push.header.session);
    completions->Add([start = push.start, status = verdict.status()] { start(status); });
    return;
  }
  const auto start = std::make_shared<PushStart>();  // std::function wants to be copied
  if (verdict->has_value()) {
    room_->Release(push.header.session);
    start->answer = **verdict;
  } else {
    start->push = std::make_unique<PendingPush>(push.header, roster_.layout());
    room_->NoteArrived(push.header.session, start->push->arrived());
  }
  completions->Add([tell = push.start, start] { tell(std::move(*start)); });
}

}  // namespace sluice
