#include "tests/simulation/oracle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// The answer to a repeated push.
PushOutcome Again(const PushOutcome& first) {
  PushOutcome outcome = first;
  outcome.first_disposition = first.disposition;
  outcome.disposition = Disposition::kDuplicate;
  return outcome;
}

Fate FateOfVerdict(const PushVerdict& verdict) {
  if (verdict.goes_on()) return Fate::kArriving;
  if (verdict.reason == Reason::kUnknownSession) return Fate::kAborted;
  if (!verdict.answered) return Fate::kRejected;
  const bool stale = verdict.outcome.disposition == Disposition::kStaleDropped;
  return stale ? Fate::kStale : Fate::kDuplicate;
}

double NormOf(const Layout& layout, const Values& gradient, const Values& rows) {
  double squares = 0;
  for (const float element : rows) squares += element * element;
  for (const LayoutRange& range : layout.ranges()) {
    if (range.kind == RangeKind::kStatistic) continue;
    for (uint64_t i = range.offset; i < range.end(); ++i) squares += gradient[i] * gradient[i];
  }
  return std::sqrt(squares);
}

}  // namespace

// The server's time stands still while its process does: a longer gap between two calls than two
// ticks counts as two ticks.
void Oracle::BeginCall(absl::Time now) {
  now_ += std::min(now - read_, 2 * scenario_.options.tick);
  read_ = now;
  early_door_.clear();
  early_pulls_.clear();
  announced_.clear();
  dismissed_.clear();
  if (scenario_.journal) NoteEarlyAtDoor();  // a step may become durable before the call comes
}

bool Oracle::OncePerStep() const {
  return consistency_.mode == ConsistencyMode::kSync ||
         consistency_.mode == ConsistencyMode::kBackup;
}

// ---- Pushes ----

PushVerdict Oracle::Judge(const PushHeader& header) const {
  const ModelWorker* const worker = workers_.Of(header.session.value());
  if (worker == nullptr) return PushVerdict::Error(Reason::kUnknownSession);
  if (worker->observer) return PushVerdict::Error(Reason::kNotAWorker);
  const PushOutcome* const first = worker->StoredAnswer(header.sequence.value());
  if (first != nullptr) return PushVerdict::Answer(Again(*first));
  if (header.sequence.value() <= worker->highest) {
    return PushVerdict::Error(Reason::kSequenceTooOld);
  }
  const bool this_history = IsOfThisHistory(header);
  const uint64_t of = header.step.value();
  if (this_history && of > step_) return PushVerdict::Error(Reason::kFutureStep);
  const uint64_t age = of > step_ ? 0 : step_ - of;
  bool fresh = this_history;
  if (OncePerStep()) fresh = fresh && age == 0 && of >= worker->from;
  if (consistency_.max_staleness.has_value()) fresh = fresh && age <= *consistency_.max_staleness;
  if (!fresh) {
    return PushVerdict::Answer({Disposition::kStaleDropped, Step(step_),
                                scenario_.options.incarnation, age, absl::nullopt, ""});
  }
  if (OncePerStep() && step_sum_.Has(worker->name)) {
    return PushVerdict::Error(Reason::kAlreadyContributed);
  }
  if (IsAhead(*worker)) return PushVerdict::Error(Reason::kAheadOfOthers);
  return PushVerdict::GoesOn();
}

bool Oracle::IsAhead(const ModelWorker& worker) const {
  if (consistency_.mode != ConsistencyMode::kSsp) return false;
  const uint64_t slowest = started_ ? workers_.Slowest().value_or(worker.pushes) : 0;
  return worker.pushes > slowest + consistency_.slack;
}

PushVerdict Oracle::JudgeAtDoor(const PushHeader& header) const {
  const bool ended = workers_.Of(header.session.value()) == nullptr;
  if (draining_ && !ended) return PushVerdict::Error(Reason::kDraining);
  return Judge(header);
}

PushVerdict Oracle::BeginPush(uint64_t number, const PushHeader& header, const Values& gradient,
                              Reason fault) {
  const size_t waiting = WaitingOf(header.session);
  ModelPush& push = pushes_[number];
  push = {number, header, gradient, Fate::kWaiting, false};
  if (!initialized()) fault = Reason::kNotInitialized;
  if (journal_stopped_) fault = Reason::kJournalStopped;
  if (draining_) fault = Reason::kDraining;
  if (fault == Reason::kNone) Heartbeat(header.session);
  PushVerdict verdict = fault == Reason::kNone ? Judge(header) : PushVerdict::Error(fault);
  if (verdict.goes_on() && waiting >= kMostWaiting) {
    verdict = PushVerdict::Error(Reason::kBadArgument);
  }
  if (!verdict.goes_on()) Conclude(push, verdict);
  return verdict;
}

std::string Oracle::HearAtDoor(uint64_t number, const PushVerdict& told, uint64_t journaled) {
  const auto waiting = pushes_.find(number);
  if (waiting == pushes_.end() || waiting->second.fate != Fate::kWaiting) {
    return "nothing: it does not wait at the door";
  }
  ModelPush& push = waiting->second;
  const PushVerdict now = JudgeAtDoor(push.header);
  const auto early = early_door_.equal_range(number);
  const bool expected =
      told == now || std::any_of(early.first, early.second,
                                 [&](const auto& verdict) { return told == verdict.second; });
  if (!expected) return Words(now);
  Conclude(push, told);
  const uint64_t inside = Inside() + (told.goes_on() ? journaled : 0);
  if (inside > scenario_.room) return absl::StrCat("to wait: ", inside, " are inside (rule 10)");
  return "";
}

void Oracle::Conclude(ModelPush& push, const PushVerdict& verdict) {
  const Fate fate = FateOfVerdict(verdict);
  if (fate == Fate::kArriving) {
    push.fate = fate;
    return;
  }
  if (fate == Fate::kStale) ConcludeStale(push.header, verdict.outcome);
  EndPush(push, fate);
}

void Oracle::EndPush(const ModelPush& push, Fate fate) {
  ++ended_[static_cast<size_t>(fate)];
  pushes_.erase(push.number);
}

void Oracle::ConcludeStale(const PushHeader& header, const PushOutcome& outcome) {
  Remember(header, outcome);
  // If it was judged before the call's step was applied, its worker may continue at once.
  const Step judged_at = outcome.step;
  for (const auto& entry : pulls_) {
    const PullRequest& pull = entry.second.request;
    const bool waited_for_it =
        pull.session == header.session && pull.after.has_value() && *pull.after <= header.sequence;
    if (judged_at.value() < step_ && waited_for_it && pull.min_step <= judged_at) {
      early_pulls_[entry.first] = {Reason::kNone, judged_at.value()};
    }
  }
}

void Oracle::Remember(const PushHeader& header, const PushOutcome& outcome) {
  ModelWorker& worker = *workers_.Of(header.session.value());
  worker.highest = header.sequence.value();
  worker.Answer(header.sequence.value(), outcome);
  if (worker.excused) {
    worker.pushes = std::max(worker.pushes, workers_.Slowest().value_or(0));
    worker.excused = false;
  }
  if (outcome.disposition != Disposition::kStaleDropped) ++worker.pushes;
}

PushVerdict Oracle::FinishPush(uint64_t number, const Values& rows, Reason fault) {
  ModelPush& push = pushes_.at(number);
  const absl::optional<double>& bound = scenario_.options.guards.max_push_norm;
  Heartbeat(push.header.session);
  if (fault == Reason::kNone && bound && NormOf(scenario_.layout, push.gradient, rows) > *bound) {
    fault = Reason::kNormTooLarge;
  }
  return Advance(&push, fault);
}

PushVerdict Oracle::Take(ModelPush& push, Reason fault) {
  const bool skipped = fault == Reason::kNotFinite && scenario_.options.guards.skip_not_finite;
  if (fault != Reason::kNone && !skipped) {
    EndPush(push, Fate::kRejected);
    return PushVerdict::Error(fault);
  }
  const PushVerdict verdict = Judge(push.header);
  if (verdict.goes_on()) return Count(push, skipped);
  Conclude(push, verdict);
  return verdict;
}

PushVerdict Oracle::Count(ModelPush& push, bool skipped) {
  const PushHeader header = push.header;
  const ModelWorker& worker = *workers_.Of(header.session.value());
  const uint64_t age = step_ - header.step.value();
  // Where no step waits for particular workers, a gradient that is left out is in no step.
  if (!skipped || OncePerStep()) {
    step_sum_.Enter({worker.index, worker.name, worker.process, worker.session, header.samples, age,
                     skipped, std::move(push.gradient), header.running_means, header.options},
                    now_);
    workers_.Of(header.session.value())->part_of[header.sequence.value()] = step_;
  }
  EndPush(push, skipped ? Fate::kSkipped : Fate::kAccepted);
  PushOutcome outcome = {skipped ? Disposition::kSkipped : Disposition::kAccepted,
                         Step(step_),
                         scenario_.options.incarnation,
                         age,
                         absl::nullopt,
                         ""};
  if (!skipped && IsComplete()) {
    outcome.disposition = Disposition::kApplied;
    outcome.step = Step(step_ + 1);
    unpublished_ = header;
  }
  Remember(header, outcome);
  return PushVerdict::Answer(outcome);
}

// ---- Steps ----

PushVerdict Oracle::Advance(ModelPush* arrival, Reason fault) {
  PushVerdict verdict;
  for (;;) {
    if (step_sum_.empty()) Adopt();
    if (IsComplete()) {
      Apply();
    } else if (arrival != nullptr) {
      verdict = Take(*arrival, fault);
      arrival = nullptr;
    } else {
      break;
    }
  }
  CheckFinished();
  return verdict;
}

bool Oracle::IsComplete() const {
  if (!initialized()) return false;
  // A step without members is applied empty for the workers that wait for the next.
  const bool deserted = started_ && workers_.Members(step_).empty();
  if (deserted && workers_.CountAlive(false) > 0) return true;
  if (step_sum_.counted() + (OncePerStep() ? step_sum_.skipped() : 0) == 0) return false;
  if (deserted) return true;
  const bool proceeds = overdue_ && consistency_.on_max_step_wait == StepWaitAction::kProceed;
  const bool enough = step_sum_.counted() >= consistency_.quorum;
  if (!OncePerStep()) return proceeds || enough || AllArePart();
  if (!started_) return false;
  return proceeds || Missing().empty() || (consistency_.mode == ConsistencyMode::kBackup && enough);
}

absl::optional<absl::Time> Oracle::HeldUpSince() const {
  if (consistency_.mode != ConsistencyMode::kSsp) return step_sum_.since();
  absl::optional<absl::Time> since;
  for (const auto& entry : pulls_) {
    const ModelPull& pull = entry.second;
    if (!pull.held_up_since.has_value()) continue;
    since = std::min(since.value_or(now_), *pull.held_up_since);
  }
  return since;
}

void Oracle::Apply() {
  NoteEarly();
  if (scenario_.journal) journaled_.push_back(Journaled());
  published_.push_back(
      step_sum_.Apply(consistency_, LearningRate(step_sum_.options()), published_.back()));
  ++step_;
  overdue_ = false;
  unpublished_.reset();
}

void Oracle::NoteEarlyAtDoor() {
  for (const auto& entry : pushes_) {
    if (entry.second.fate != Fate::kWaiting) continue;
    early_door_.emplace(entry.first, JudgeAtDoor(entry.second.header));
  }
}

void Oracle::NoteEarly() {
  NoteEarlyAtDoor();
  for (const auto& entry : pulls_) {
    const Turn turn = TurnOf(entry.second.request);
    if (turn.when == Turn::kNow) early_pulls_[entry.first] = turn.verdict;
  }
}

}  // namespace sluice
