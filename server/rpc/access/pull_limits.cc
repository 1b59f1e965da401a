#include "server/rpc/access/pull_limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status TooManyPulls(absl::string_view whose, size_t pulls) {
  return MakeError(
      Reason::kTooManyPulls,
      absl::StrCat(whose, " ", pulls, " pulls under way, the limit; read those first"));
}

}  // namespace

void PullLimits::Begin(SessionId session, SessionRole role) {
  absl::MutexLock lock(&mu_);
  if (role == SessionRole::kWorker) workers_.insert(session);
}

void PullLimits::End(SessionId session) {
  absl::MutexLock lock(&mu_);
  workers_.erase(session);
}

absl::StatusOr<std::shared_ptr<PullPermit>> PullLimits::Permit(SessionId session) {
  absl::MutexLock lock(&mu_);
  const bool observes = workers_.count(session) == 0;
  const absl::Status entered = Enter(session, observes);
  if (!entered.ok()) return entered;
  return std::make_shared<PullPermit>(*this, session, observes);
}

absl::Status PullLimits::Enter(SessionId session, bool observes) {
  const auto found = under_way_.find(session);
  const size_t pulls = found == under_way_.end() ? 0 : found->second;
  if (pulls >= (observes ? kMostOfObserver : kMostOfWorker)) {
    return TooManyPulls(absl::StrCat("session ", session.value(), " has"), pulls);
  }
  if (observes && of_observers_ == kMostOfObservers) {
    return TooManyPulls("the observers have", of_observers_);
  }
  under_way_[session] = pulls + 1;
  if (observes) ++of_observers_;
  return absl::OkStatus();
}

// Another server may tell this one of a session only after the session's first pull has come.
void PullLimits::Recognize(PullPermit& pull) {
  if (!pull.observes_ || workers_.count(pull.session_) == 0) return;
  pull.observes_ = false;
  if (pull.counts_) --of_observers_;
}

void PullLimits::Leave(PullPermit& pull) {
  Callbacks again;
  {
    absl::MutexLock lock(&mu_);
    StopCounting(pull);
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &pull), waiting_.end());
    again = Release(pull);
  }
  for (const auto& ask : again) ask();
}

void PullLimits::StopCounting(PullPermit& pull) {
  if (!std::exchange(pull.counts_, false)) return;
  const auto found = under_way_.find(pull.session_);
  if (--found->second == 0) under_way_.erase(found);
  if (pull.observes_) --of_observers_;
}

// Returns the callbacks of the pulls that need not wait any more: all if a step is released, else
// those of the same session.
PullLimits::Callbacks PullLimits::Release(PullPermit& pull) {
  Callbacks again;
  if (!pull.held_.has_value()) return again;
  Holders& holders = pull.observes_ ? by_observers_ : by_workers_;
  const auto held = holders.find(*pull.held_);
  held->second.erase({pull.session_, &pull});
  const bool released = held->second.empty();
  if (released) holders.erase(held);
  if (pull.observes_) return again;
  const auto waits_on = [&](const PullPermit* waiting) {
    return !released && waiting->session_ != pull.session_;
  };
  const auto end = std::stable_partition(waiting_.begin(), waiting_.end(), waits_on);
  for (auto it = end; it != waiting_.end(); ++it) again.push_back(std::move((*it)->again_));
  waiting_.erase(end, waiting_.end());
  return again;
}

bool PullLimits::MayHold(const Parameters& parameters, const PullPermit& pull) const {
  if (!waits_) return true;
  size_t others = 0;  // steps that the session holds besides this one
  for (const auto& held : by_workers_) {
    const auto holder = held.second.lower_bound({pull.session_, nullptr});
    const bool of_session = holder != held.second.end() && holder->first == pull.session_;
    if (of_session && held.first != parameters) ++others;
  }
  if (others >= kStepsOfWorker) return false;
  return by_workers_.count(parameters) > 0 || by_workers_.size() < kStepsOfWorkers;
}

// Ends observers' pulls, so that one step less is held: that of `session` alone, if there is one,
// so that an observer cannot displace the others by many pulls of its own; else the oldest.
PullLimits::Callbacks PullLimits::EndOldest(SessionId session) {
  const auto own = std::find_if(by_observers_.begin(), by_observers_.end(), [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(),
                       [&](const auto& pull) { return pull.first == session; });
  });
  const auto oldest = own != by_observers_.end() ? own : by_observers_.begin();
  Callbacks ends;
  for (const auto& [of, pull] : oldest->second) {
    pull->ended_ = true;
    pull->held_.reset();
    for (auto& end : pull->ends_) ends.push_back(std::move(end));
    pull->ends_.clear();
  }
  by_observers_.erase(oldest);
  return ends;
}

PullPermit::Turn PullPermit::Hold(const PullLimits::Parameters& parameters,
                                  std::function<void()> again) {
  PullLimits::Callbacks ends;
  {
    absl::MutexLock lock(&limits_.mu_);
    if (ended_) return Turn::kEnded;
    limits_.Recognize(*this);
    if (!observes_ && !limits_.MayHold(parameters, *this)) {
      again_ = std::move(again);
      limits_.waiting_.push_back(this);
      return Turn::kLater;
    }
    auto& holders = observes_ ? limits_.by_observers_ : limits_.by_workers_;
    if (observes_ && holders.count(parameters) == 0 &&
        holders.size() == PullLimits::kStepsOfObservers) {
      ends = limits_.EndOldest(session_);
    }
    holders[parameters].emplace(session_, this);
    held_ = parameters;
  }
  for (const auto& end : ends) end();
  return Turn::kNow;
}

bool PullPermit::Cancel() {
  std::function<void()> again;  // destroyed after the lock is released
  absl::MutexLock lock(&limits_.mu_);
  ended_ = true;
  auto& waiting = limits_.waiting_;
  const auto found = std::find(waiting.begin(), waiting.end(), this);
  if (found == waiting.end()) return false;
  waiting.erase(found);
  again = std::move(again_);
  return true;
}

void PullPermit::StopCounting() {
  absl::MutexLock lock(&limits_.mu_);
  limits_.StopCounting(*this);
}

void PullPermit::OnEnd(std::function<void()> end) {
  {
    absl::MutexLock lock(&limits_.mu_);
    if (!ended_) {
      ends_.push_back(std::move(end));
      return;
    }
  }
  end();
}

}  // namespace sluice
