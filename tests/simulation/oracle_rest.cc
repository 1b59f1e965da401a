// The oracle's rules of waiting pushes, of the in-flight limit, of pulls, of the end of a call, and
// of the status that the shard reports.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/simulation/oracle.h"

namespace sluice {

// ---- Pushes that wait ----

size_t Oracle::WaitingOf(SessionId session) const {
  return static_cast<size_t>(std::count_if(pushes_.begin(), pushes_.end(), [&](const auto& entry) {
    return entry.second.fate == Fate::kWaiting && entry.second.header.session == session;
  }));
}

bool Oracle::CancelPush(uint64_t number) {
  const auto push = pushes_.find(number);
  if (push == pushes_.end() || push->second.fate != Fate::kWaiting) return false;
  EndPush(push->second, Fate::kAborted);
  return true;
}

// ---- The in-flight limit ----

ModelSessions Oracle::SessionsInside() const {
  ModelSessions sessions = SessionsHeldInOrder();
  for (const auto& entry : pushes_) {
    if (entry.second.fate == Fate::kArriving)
      sessions.push_back(entry.second.header.session.value());
  }
  return sessions;
}

// With ReductionOrder::kRank, the gradients that wait until the first missing one is added.
ModelSessions Oracle::SessionsHeldInOrder() const {
  if (consistency_.order != ReductionOrder::kRank) return {};
  const absl::optional<ModelRank> first_missing = FirstMissing();
  return first_missing.has_value() ? step_sum_.SessionsBehind(*first_missing) : ModelSessions();
}

uint32_t Oracle::Inside() const { return static_cast<uint32_t>(SessionsInside().size()); }

bool Oracle::MayEnter(const ModelPush& push) const {
  const ModelSessions inside = SessionsInside();
  const uint64_t session = push.header.session.value();
  if (std::count(inside.begin(), inside.end(), session) > 0) return false;
  // One place is reserved for the lowest rank that the step waits for. (In modes without
  // OncePerStep() it may be a new process, which makes no difference: no step waits for it.)
  const absl::optional<ModelRank> first = OncePerStep() ? FirstMissing() : absl::nullopt;
  bool may_use_all = first.has_value() && workers_.Of(session)->rank() == *first;
  for (const uint64_t other : inside) {
    const ModelWorker* const worker = workers_.Of(other);
    may_use_all = may_use_all || (worker != nullptr && worker->rank() == first);
  }
  return inside.size() + StepsInMemory() + (may_use_all ? 0 : 1) < scenario_.room;
}

// ---- Pulls ----

Oracle::Turn Oracle::TurnOf(const PullRequest& request) const {
  const ModelWorker* const worker = workers_.Of(request.session.value());
  const bool observes = initialized() && worker != nullptr && worker->observer;
  if (draining_ && !observes) return {Turn::kError, {Reason::kDraining, 0}, false};
  if (worker == nullptr) return {Turn::kError, {Reason::kUnknownSession, 0}, false};
  Turn now = {Turn::kNow, {Reason::kNone, step_}, false};
  // An observer does not wait: no later step will come, unless one is due.
  if (observes && (draining_ || finished_)) {
    now.may_wait = IsComplete();
    return now;
  }
  if (!initialized() || request.min_step.value() > step_) return {Turn::kNotYet, {}, false};
  if (!request.after.has_value()) return now;
  if (worker->highest < request.after->value()) return {Turn::kNotYet, {}, false};
  // A push is not answered before the step that it completed is published.
  if (unpublished_.has_value() && unpublished_->session == request.session &&
      request.after >= unpublished_->sequence) {
    return {Turn::kNotYet, {}, false};
  }
  const bool held_up = OncePerStep() ? step_sum_.HasProcess(worker->process) : IsAhead(*worker);
  // It waits until the next call applies the step that is due.
  now.may_wait = IsComplete() || (OncePerStep() && step_sum_.Has(worker->name));
  return held_up ? Turn{Turn::kHeldUp, {}, false} : now;
}

void Oracle::Pull(uint64_t number, const PullRequest& request) {
  Heartbeat(request.session);
  pulls_[number].request = request;
}

bool Oracle::CancelPull(uint64_t number) { return pulls_.erase(number) > 0; }

std::string Oracle::HearPull(uint64_t number, const PullVerdict& told) {
  const auto pull = pulls_.find(number);
  if (pull == pulls_.end()) return "nothing: it is answered already, or was cancelled";
  const Turn turn = TurnOf(pull->second.request);
  const auto early = early_pulls_.find(number);
  const bool answers = turn.when == Turn::kNow || turn.when == Turn::kError;
  if ((answers && told == turn.verdict) || (early != early_pulls_.end() && told == early->second)) {
    pulls_.erase(pull);
    return "";
  }
  return answers ? Words(turn.verdict) : "to wait";
}

// ---- At rest ----

std::string Oracle::EndCall() {
  for (const auto& entry : pushes_) {
    const ModelPush& push = entry.second;
    if (push.fate != Fate::kWaiting) continue;
    const PushVerdict verdict = JudgeAtDoor(push.header);
    const bool ended =
        verdict.reason == Reason::kDraining || verdict.reason == Reason::kUnknownSession;
    const bool step_is_due = OncePerStep() && IsComplete();  // the next call makes the step
    if (ended || (MayEnter(push) && !step_is_due)) {
      return absl::StrCat("push ", entry.first,
                          " waits at the door without reason (rule 7): ", Words(verdict));
    }
  }
  for (auto& entry : pulls_) {
    ModelPull& pull = entry.second;
    const Turn turn = TurnOf(pull.request);
    if ((turn.when == Turn::kNow && !turn.may_wait) || turn.when == Turn::kError) {
      return absl::StrCat("pull ", entry.first,
                          " waits without reason (rule 7): ", Words(turn.verdict));
    }
    if (turn.when != Turn::kNotYet && !pull.held_up_since.has_value()) pull.held_up_since = now_;
  }
  const uint32_t inside = Inside();
  if (inside > scenario_.room) return absl::StrCat(inside, " pushes are inside (rule 10)");
  return "";
}

PushCounters Oracle::Counters() const {
  PushCounters counters;
  uint64_t* const column[] = {&counters.in_progress, &counters.in_progress, &counters.accepted,
                              &counters.stale,       &counters.skipped,     &counters.duplicate,
                              &counters.rejected,    &counters.aborted};
  counters.in_progress = pushes_.size();
  for (size_t fate = 0; fate < kFates; ++fate) *column[fate] += ended_[fate];
  counters.received = pushes_.size() + std::accumulate(ended_.begin(), ended_.end(), uint64_t{0});
  return counters;
}

StepState Oracle::Current() const {
  StepState state;
  state.since = HeldUpSince();
  state.accumulated = step_sum_.counted();
  state.skipped = step_sum_.skipped();
  const uint32_t missing = CountMissing();
  const uint32_t everybody = state.accumulated + missing;
  state.required = consistency_.quorum;
  if (consistency_.mode == ConsistencyMode::kSync) state.required = everybody;
  if (consistency_.mode == ConsistencyMode::kBackup) {
    state.required = std::min(consistency_.quorum, everybody);
  }
  for (const auto& entry : workers_.all()) {
    if (step_sum_.HasProcess(entry.second.process)) {
      state.contributed.push_back(entry.first);
    }
  }
  for (const ModelWorker* const worker : Awaited()) {
    AwaitedWorker awaited;
    awaited.worker = worker->name;
    awaited.since_last_seen = now_ - worker->heard;
    state.awaited.push_back(awaited);
  }
  const bool by_clock = consistency_.mode == ConsistencyMode::kSsp && HeldUpSince().has_value();
  if (OncePerStep() || by_clock || workers_.CountAlive(false) == 0) state.absent = CountAbsent();
  state.missing =
      OncePerStep() ? missing : static_cast<uint32_t>(state.awaited.size()) + state.absent;
  return state;
}

Phase Oracle::phase() const {
  if (draining_) return Phase::kDraining;
  if (finished_) return Phase::kFinished;
  return started_ && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

}  // namespace sluice
