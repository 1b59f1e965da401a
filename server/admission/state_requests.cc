#include "server/admission/state_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status NobodyHasIt() {
  return MakeError(Reason::kNoState,
                   "the workers of this job have the model, and none that takes part has it: all "
                   "have come after the step that training is at; start the job again with an "
                   "empty --checkpoint-dir, and let the program load what it has saved");
}

}  // namespace

StateRequestId StateRequests::Add(SessionId session, absl::optional<uint64_t> ahead,
                                  WorkerStateCallback done, Completions* completions) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto earlier = it++;
    if (earlier->second.session != session) continue;
    completions->Add([replaced = std::move(earlier->second.done)] {
      replaced(MakeError(Reason::kBadArgument, "a later PullState of this session replaces it"));
    });
    waiting_.erase(earlier);
  }
  last_id_ = last_id_.Next();
  waiting_.emplace(last_id_, Request{session, ahead, std::move(done)});
  return last_id_;
}

bool StateRequests::Cancel(StateRequestId id) { return waiting_.erase(id) > 0; }

bool StateRequests::Waits(SessionId session) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const auto& entry) { return entry.second.session == session; });
}

// What an earlier process of the name has contributed does not count.
void StateRequests::Note(const std::vector<SessionId>& changed, const SessionTable& sessions,
                         Step step) {
  if (std::exchange(step_, step) != step) {
    have_it_.clear();
    failed_.clear();
  }
  for (const SessionId session : changed) {
    const auto record = sessions.FindWorker(session);
    if (record.ok() && (*record)->contributed == step && !(*record)->inherited) {
      have_it_.insert(session);
    }
  }
}

absl::optional<SessionId> StateRequests::Settle(const absl::Status& serving,
                                                const SessionTable& sessions, Step step,
                                                absl::Time now, Completions* completions) {
  if (waiting_.empty() && !asked_.has_value()) return absl::nullopt;
  if (!serving.ok()) End(serving, completions);
  EndLostRequests(sessions, completions);
  EndIfAllWait(sessions, step, now, completions);
  if (asked_.has_value()) {
    const bool stays =
        asked_->offer != StateOfferId() || (asked_->step == step && !waiting_.empty());
    if (!stays || !sessions.IsAlive(asked_->session)) asked_.reset();
  }
  if (!asked_.has_value() && !waiting_.empty()) Choose(sessions, step);
  if (!asked_.has_value() || !Wants(asked_->session)) return absl::nullopt;
  return asked_->session;
}

void StateRequests::EndLostRequests(const SessionTable& sessions, Completions* completions) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto request = it++;
    const absl::Status open = sessions.FindWorker(request->second.session).status();
    if (open.ok()) continue;
    completions->Add([done = std::move(request->second.done), open] { done(open); });
    waiting_.erase(request);
  }
}

void StateRequests::EndIfAllWait(const SessionTable& sessions, Step step, absl::Time now,
                                 Completions* completions) {
  if (waiting_.empty() || waiting_.size() < sessions.census().open(SessionRole::kWorker)) {
    since_.reset();
    return;
  }
  const auto most = std::max_element(
      waiting_.begin(), waiting_.end(),
      [](const auto& a, const auto& b) { return a.second.ahead < b.second.ahead; });
  if (most->second.ahead.has_value()) {
    WorkerState own;
    own.step = step;
    completions->Add([done = std::move(most->second.done), own] { done(own); });
    waiting_.erase(most);
    return;
  }
  if (!since_.has_value()) since_ = now;
  if (now - *since_ >= patience_) End(NobodyHasIt(), completions);
}

void StateRequests::Choose(const SessionTable& sessions, Step step) {
  if (step != step_) return;
  for (const bool again : {false, true}) {
    for (const SessionId session : have_it_) {
      const bool has_failed = failed_.count(session) > 0;
      if (has_failed != again || !sessions.IsAlive(session) || Waits(session)) continue;
      asked_ = Asked{session, step};
      return;
    }
  }
}

bool StateRequests::Wants(SessionId session) const {
  return !waiting_.empty() && asked_.has_value() && asked_->session == session &&
         asked_->offer == StateOfferId();
}

absl::Status StateRequests::WantedError() {
  return MakeError(Reason::kStateWanted,
                   "another worker of this job needs the model: offer it with OfferState, then "
                   "repeat the call");
}

absl::StatusOr<StateOfferId> StateRequests::BeginOffer(SessionId session) {
  if (Wants(session)) return asked_->offer = last_offer_ = last_offer_.Next();
  return MakeError(Reason::kBadArgument,
                   "this worker is not asked for the model, or offers it already; offer it after a "
                   "call that got STATE_WANTED");
}

void StateRequests::EndOffer(StateOfferId offer, Completions* completions) {
  if (!asked_.has_value() || asked_->offer != offer) return;
  failed_.insert(asked_->session);
  asked_.reset();
  if (++failures_ < kMostFailures) return;
  failures_ = 0;
  End(MakeError(Reason::kNoState,
                absl::StrCat("other workers have the model, and ", kMostFailures,
                             " offers of it in a row were damaged, too large or broke off; their "
                             "logs say more")),
      completions);
}

void StateRequests::HandOn(StateOfferId offer, WorkerState state, Completions* completions) {
  if (!asked_.has_value() || asked_->offer != offer) return;
  if (asked_->step == state.step) End(std::move(state), completions);
  asked_.reset();
  failures_ = 0;
}

void StateRequests::Fail(StateOfferId offer, const std::string& failure, Completions* completions) {
  if (!asked_.has_value() || asked_->offer != offer) return;
  End(MakeError(Reason::kNoState,
                absl::StrCat("the worker that was asked for the model could not write it: ",
                             Shown(failure))),
      completions);
  asked_.reset();
}

std::vector<SessionId> StateRequests::Served() const {
  std::vector<SessionId> served;
  for (const auto& entry : waiting_) served.push_back(entry.second.session);
  if (asked_.has_value()) served.push_back(asked_->session);
  return served;
}

void StateRequests::End(const absl::StatusOr<WorkerState>& result, Completions* completions) {
  for (auto& entry : std::exchange(waiting_, {})) {
    completions->Add([done = std::move(entry.second.done), result] { done(result); });
  }
}

}  // namespace sluice
