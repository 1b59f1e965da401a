#include "server/admission/push_admission.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/admission/in_flight_capacity.h"

namespace sluice {
namespace {

// Passes the answer of a push that was not admitted to its `start` callback.
std::function<void(const absl::StatusOr<PushOutcome>&)> AnswerToStart(AdmissionCallback start) {
  return [start = std::move(start)](const absl::StatusOr<PushOutcome>& answer) {
    if (answer.ok()) {
      start(Admission{PushId(), *answer, {}, nullptr});
    } else {
      start(answer.status());
    }
  };
}

absl::Status TooManyWaiting(SessionId session) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(InFlightLimit::kMostWaiting, " pushes of session ", session.value(),
                                " wait already; send a push after the earlier one is answered"));
}

// How the options of a push differ from those of the others of its step, or "".
std::string OptionsDiffer(const OptimizerConfig& job, const PushHeader& header,
                          const Contributions& others) {
  if (!others.lowest().has_value()) return "";
  const std::string& other = others.lowest()->second;
  const absl::optional<double>& theirs = others.options().clip_norm;
  if (header.clip_norm != theirs) {
    const auto shown = [](const absl::optional<double>& norm) {
      return norm.has_value() ? absl::StrCat(*norm) : "none";
    };
    return absl::StrCat("clip_norm is ", shown(header.clip_norm), ", and ", shown(theirs), " with ",
                        Shown(other));
  }
  return DifferenceOf(job, header.options, others.options().changed, other);
}

// The step that must be durable before the stored answer of this push is given, if any.
absl::optional<Step> DurableWith(const PushHeader& header, const SessionTable& sessions) {
  const auto record = sessions.Find(header.session);
  if (!record.ok()) return absl::nullopt;
  const auto kept = (*record)->answers.find(header.sequence);
  if (kept == (*record)->answers.end() || !kept->second.part_of.has_value()) return absl::nullopt;
  return kept->second.part_of->Next();
}

void MarkNotFinite(SessionId session, SessionTable& sessions) {
  const auto record = sessions.Find(session);
  if (!record.ok()) return;
  sessions.Change(**record, [](SessionRecord& refused) { refused.not_finite = true; });
}

}  // namespace

PushAdmission::PushAdmission(const ShardOptions& options, const RuntimeSettings& settings,
                             const IncarnationHistory& incarnations, Roster& roster,
                             CurrentStep& step, HeldAnswers& answers, const Clock& clock)
    : options_(options),
      settings_(settings),
      roster_(roster),
      step_(step),
      answers_(answers),
      clock_(clock),
      gate_(settings.policy(), incarnations, roster.sessions()) {}

void PushAdmission::LimitInFlight() {
  const uint32_t vectors =
      InFlightCapacity(*roster_.model().layout, options_, settings_.consistency());
  if (in_flight_ == nullptr) {
    in_flight_ = std::make_unique<InFlightLimit>(vectors);
  } else {
    in_flight_->SetCapacity(vectors);
  }
}

PushId PushAdmission::Begin(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                            std::function<void()> cancel, Completions* completions) {
  const Gate::Verdict verdict = gate_.Open(header, step_.Progress(), clock_.Now());
  if (!verdict.ok()) {
    completions->Add([start, status = verdict.status()] { start(status); });
  } else if (verdict->has_value()) {
    Answer(*header, **verdict, AnswerToStart(start), completions);
  } else if (!in_flight_->MayWait(header->session)) {
    gate_.Abandon(Abandoned::kRejected);
    completions->Add([start, why = TooManyWaiting(header->session)] { start(why); });
  } else {
    const Rank rank = (*roster_.sessions().Find(header->session))->rank();
    in_flight_->Wait({NextId(), *header, rank, std::move(start), std::move(cancel)});
    return last_id_;
  }
  return PushId();
}

bool PushAdmission::Cancel(PushId push) {
  if (in_flight_ == nullptr || !in_flight_->Cancel(push)) return false;
  gate_.Abandon(Abandoned::kAborted);
  return true;
}

void PushAdmission::Abandon(SessionId session, Abandoned why) {
  gate_.Abandon(why);
  in_flight_->Release(session);
}

void PushAdmission::Queue(Arrival arrival) {
  in_flight_->NoteWhole(arrival.header.session);
  arrivals_.push_back(std::move(arrival));
}

// A complete step takes no more pushes. Later ones belong to the next step.
void PushAdmission::TakeArrivals(Completions* completions) {
  while (!arrivals_.empty() && !step_.IsComplete()) {
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    Take(std::move(arrival), completions);
  }
}

void PushAdmission::Take(Arrival arrival, Completions* completions) {
  const PushHeader& header = arrival.header;
  const bool not_finite = ReasonOf(arrival.refused) == Reason::kNotFinite;
  const bool skips = options_.guards.skip_not_finite && not_finite;
  absl::Status refused = arrival.refused;
  if (refused.ok() || skips) {
    const Gate::Verdict verdict = gate_.Admit(header, step_.Progress(), clock_.Now());
    if (verdict.ok() && !verdict->has_value()) {
      Enter(std::move(arrival), completions);
      return;
    }
    if (arrival.refused.ok()) dropped_.push_back(arrival.push);
    if (verdict.ok()) {
      in_flight_->Release(header.session);
      Answer(header, **verdict, std::move(arrival.done), completions);
      return;
    }
    refused = verdict.status();
  } else {
    gate_.Abandon(Abandoned::kRejected);
    if (not_finite && roster_.sessions().IsAlive(header.session)) {
      MarkNotFinite(header.session, roster_.sessions());
      not_finite_.push_back(header.session);
    }
  }
  in_flight_->Release(header.session);
  completions->Add([done = std::move(arrival.done), refused] { done(refused); });
}

// Answers at once or, if the push is part of a step that is not durable, when it is.
void PushAdmission::Answer(const PushHeader& header, const PushOutcome& outcome,
                           AnswerCallback tell, Completions* completions) {
  const absl::optional<Step> with =
      answers_.has_journal() ? DurableWith(header, roster_.sessions()) : absl::nullopt;
  if (with.has_value() && *with > answers_.settled()) {
    answers_.Add(*with, {header.session, std::move(tell), outcome}, completions);
  } else {
    completions->Add([tell = std::move(tell), outcome] { tell(outcome); });
  }
}

void PushAdmission::LeaveOut(const absl::Status& why, Completions* completions) {
  const Step step = step_.number();
  const bool not_finite = ReasonOf(why) == Reason::kNotFinite;
  const bool skips = not_finite && options_.guards.skip_not_finite;
  uint32_t refused = 0;
  const auto fails = [&](HeldAnswer& held) {
    const bool repeats = held.outcome.disposition == Disposition::kDuplicate;
    if (!MarkLeftOut(step, &held.outcome) || repeats || skips) return false;
    if (not_finite) MarkNotFinite(held.session, roster_.sessions());
    ++refused;
    return true;
  };
  answers_.FailSome(step.Next(), fails, why, completions);
  gate_.LeaveOut(step_.contributions().accumulated(), refused);
  roster_.sessions().ChangeAll([step](SessionRecord& record) { record.LeaveOut(step); });
}

void PushAdmission::FailAll(const absl::Status& why, Completions* completions) {
  for (Arrival& arrival : std::exchange(arrivals_, {})) {
    gate_.Abandon(Abandoned::kAborted);
    in_flight_->Release(arrival.header.session);
    completions->Add([done = std::move(arrival.done), why] { done(why); });
  }
  answers_.FailAll(why, completions);
}

// The gate has passed the push, so it belongs to the current step.
void PushAdmission::Enter(Arrival arrival, Completions* completions) {
  const absl::Time now = clock_.Now();
  const Step step = step_.number();
  const bool part_of_step = arrival.refused.ok() || settings_.policy().OncePerStep();
  const PushHeader& header = arrival.header;
  SessionTable& sessions = roster_.sessions();
  const SessionRecord& record = **sessions.Find(header.session);
  // Where no step waits for particular workers, a gradient that is left out contributes to none.
  if (part_of_step) {
    sessions.Change(record, [step](SessionRecord& contributor) { contributor.Contribute(step); });
  }
  Disposition disposition = Disposition::kAccepted;
  std::string options_differ;
  if (!arrival.refused.ok()) {
    disposition = Disposition::kSkipped;
    not_finite_.push_back(header.session);
    if (settings_.policy().OncePerStep()) step_.contributions().Skip(now);
    in_flight_->Release(header.session);
  } else {
    // Where every worker contributes to each step, all have the same, unless their programs differ.
    if (settings_.policy().OncePerStep()) {
      options_differ = OptionsDiffer(*roster_.model().optimizer, header, step_.contributions());
    }
    const uint64_t staleness = step.value() - header.step.value();
    step_.contributions().Add({arrival.push, header, record.rank(), staleness},
                              settings_.consistency().order, now);
    if (step_.IsComplete()) disposition = Disposition::kApplied;
  }
  const bool applied = disposition == Disposition::kApplied;
  PushOutcome outcome = gate_.Count(header, disposition, step, applied ? step.Next() : step, now);
  outcome.options_differ = std::move(options_differ);
  if (applied || (answers_.has_journal() && part_of_step)) {
    answers_.Add(step.Next(), {header.session, std::move(arrival.done), outcome}, completions);
  } else {
    completions->Add([done = std::move(arrival.done), outcome] { done(outcome); });
  }
}

std::vector<SessionId> PushAdmission::TakeHeard() {
  return in_flight_ == nullptr ? std::vector<SessionId>() : in_flight_->TakeHeard();
}

std::vector<SessionId> PushAdmission::Served() const {
  std::vector<SessionId> served;
  if (in_flight_ != nullptr) served = in_flight_->Served();
  for (const SessionId session : answers_.Sessions()) served.push_back(session);
  return served;
}

void PushAdmission::Settle(const absl::Status& serving, Completions* completions) {
  if (in_flight_ == nullptr) return;
  EndPushes(serving, completions);
  // A push admitted now would be stale before it is complete.
  if (settings_.policy().OncePerStep() && step_.IsComplete()) return;
  if (answers_.has_journal()) {
    in_flight_->SetJournaled(step_.number().value() - answers_.settled().value());
  }
  const ReductionOrder order = settings_.consistency().order;
  while (const absl::optional<Arriving> push = in_flight_->LetIn(roster_.FirstMissing(), order)) {
    LetIn(*push, completions);
  }
}

void PushAdmission::EndPushes(const absl::Status& serving, Completions* completions) {
  const SessionTable& sessions = roster_.sessions();
  const bool draining = !serving.ok();
  if (!draining && std::exchange(ended_sessions_, sessions.ended()) == sessions.ended()) return;
  in_flight_->CancelEnded([&](SessionId session) { return sessions.IsAlive(session); },
                          completions);
  const auto leaves = [&](const Arriving& push) {
    return draining || !sessions.IsAlive(push.header.session);
  };
  for (const Arriving& push : in_flight_->TakeWaiting(leaves)) {
    const absl::Status ended = sessions.Find(push.header.session).status();
    gate_.Abandon(ended.ok() ? Abandoned::kRejected : Abandoned::kAborted);
    const absl::Status why = ended.ok() ? serving : ended;
    completions->Add([start = push.start, why] { start(why); });
  }
}

void PushAdmission::LetIn(const Arriving& push, Completions* completions) {
  // The step may have grown while the push waited.
  const Gate::Verdict verdict = gate_.Admit(push.header, step_.Progress(), clock_.Now());
  if (!verdict.ok()) {
    in_flight_->Release(push.header.session);
    completions->Add([start = push.start, status = verdict.status()] { start(status); });
    return;
  }
  if (verdict->has_value()) {
    in_flight_->Release(push.header.session);
    Answer(push.header, **verdict, AnswerToStart(push.start), completions);
    return;
  }
  const auto arrived = std::make_shared<std::atomic<uint64_t>>(0);
  in_flight_->NoteArrived(push.header.session, arrived);
  // With a journal the sum has memory of its own.
  const bool begins_sum = !answers_.has_journal() && step_.WouldBeginSum(push.rank);
  Admission admission = {push.id, {}, push.header, arrived, begins_sum};
  completions->Add([start = push.start, admission = std::move(admission)] { start(admission); });
}

}  // namespace sluice
