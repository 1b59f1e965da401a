// The oracle's rules of waiting pushes, of pulls, of the end of a call, and of the status that the
// shard reports.

#include <algorithm>

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
  Fate& fate = pushes_.at(number).fate;
  if (fate != Fate::kWaiting) return false;
  fate = Fate::kAborted;
  return true;
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

bool Oracle::CancelPull(uint64_t number) {
  const bool waited = pulls_.at(number).waits;
  pulls_.at(number).waits = false;
  return waited;
}

std::string Oracle::HearPull(uint64_t number, const PullVerdict& told) {
  ModelPull& pull = pulls_.at(number);
  if (!pull.waits) return "nothing: it is answered already, or was cancelled";
  const Turn turn = TurnOf(pull.request);
  const auto early = early_pulls_.find(number);
  const bool answers = turn.when == Turn::kNow || turn.when == Turn::kError;
  if ((answers && told == turn.verdict) || (early != early_pulls_.end() && told == early->second)) {
    pull.waits = false;
    return "";
  }
  return answers ? Words(turn.verdict) : "to wait";
}

uint32_t Oracle::WaitingPulls() const {
  return static_cast<uint32_t>(std::count_if(pulls_.begin(), pulls_.end(),
                                             [](const auto& entry) { return entry.second.waits; }));
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
    if (!pull.waits) continue;
    const Turn turn = TurnOf(pull.request);
    if ((turn.when == Turn::kNow && !turn.may_wait) || turn.when == Turn::kError) {
      return absl::StrCat("pull ", entry.first,
                          " waits without reason (rule 7): ", Words(turn.verdict));
    }
    if (turn.when != Turn::kNotYet && !pull.held_up_since.has_value()) pull.held_up_since = now_;
  }
  if (Inside() > scenario_.room) return absl::StrCat(Inside(), " pushes are inside (rule 10)");
  return "";
}

PushCounters Oracle::Counters() const {
  PushCounters counters;
  uint64_t* const column[] = {&counters.in_progress, &counters.in_progress, &counters.accepted,
                              &counters.stale,       &counters.skipped,     &counters.duplicate,
                              &counters.rejected,    &counters.aborted};
  for (const auto& entry : pushes_) ++*column[static_cast<int>(entry.second.fate)];
  counters.received = pushes_.size();
  return counters;
}

StepState Oracle::Current() const {
  StepState state;
  state.since = HeldUpSince();
  state.accumulated = step_sum_.counted();
  state.skipped = step_sum_.skipped();
  const uint32_t everybody = state.accumulated + CountMissing();
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
  if (OncePerStep() || by_clock) state.absent = CountAbsent();
  state.missing =
      OncePerStep() ? CountMissing() : static_cast<uint32_t>(state.awaited.size()) + state.absent;
  return state;
}

Phase Oracle::phase() const {
  if (draining_) return Phase::kDraining;
  if (finished_) return Phase::kFinished;
  return started_ && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

}  // namespace sluice
