#include "server/admission/in_flight_limit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice {

absl::optional<Arriving> InFlightLimit::LetIn(const absl::optional<Rank>& first_missing) {
  const bool reserved_is_used = first_missing.has_value() &&
                                std::any_of(inside_.begin(), inside_.end(), [&](const auto& entry) {
                                  return entry.second.rank == *first_missing;
                                });
  const auto may_enter = [&](const Arriving& push) {
    if (inside_.count(push.header.session) > 0) return false;
    const bool may_use_all = reserved_is_used || push.rank == first_missing;
    return inside_.size() + journaled_ < (may_use_all ? capacity_ : capacity_ - 1);
  };
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), may_enter);
  if (it == waiting_.end()) return absl::nullopt;
  absl::optional<Arriving> push = std::move(*it);
  waiting_.erase(it);
  Inside& inside = inside_[push->header.session];
  inside.rank = push->rank;
  inside.cancel = push->cancel;
  return push;
}

void InFlightLimit::NoteArrived(SessionId session, ArrivedBytes arrived) {
  inside_[session].arrived = std::move(arrived);
}

void InFlightLimit::NoteWhole(SessionId session) {
  Inside& inside = inside_[session];
  inside.cancel = nullptr;
  inside.whole = true;
}

std::vector<SessionId> InFlightLimit::TakeHeard() {
  std::vector<SessionId> heard;
  for (auto& entry : inside_) {
    Inside& inside = entry.second;
    if (inside.whole || inside.arrived == nullptr) continue;
    const uint64_t arrived = inside.arrived->load(std::memory_order_relaxed);
    if (std::exchange(inside.heard, arrived) != arrived) heard.push_back(entry.first);
  }
  return heard;
}

std::vector<SessionId> InFlightLimit::Served() const {
  std::vector<SessionId> served;
  for (const auto& entry : inside_) {
    if (entry.second.whole) served.push_back(entry.first);
  }
  for (const Arriving& push : waiting_) {
    if (inside_.count(push.header.session) == 0) served.push_back(push.header.session);
  }
  return served;
}

void InFlightLimit::CancelEnded(const std::function<bool(SessionId)>& is_alive,
                                Completions* completions) {
  for (auto& entry : inside_) {
    if (is_alive(entry.first) || !entry.second.cancel) continue;
    completions->Add(std::move(entry.second.cancel));
    entry.second.cancel = nullptr;
  }
}

std::vector<Arriving> InFlightLimit::TakeWaiting(
    const std::function<bool(const Arriving&)>& leaves) {
  std::vector<Arriving> taken;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!leaves(*it)) {
      ++it;
      continue;
    }
    taken.push_back(std::move(*it));
    it = waiting_.erase(it);
  }
  return taken;
}

uint64_t InFlightLimit::BytesOf(SessionId session) const {
  const auto it = inside_.find(session);
  if (it == inside_.end() || it->second.arrived == nullptr) return 0;
  return it->second.arrived->load(std::memory_order_relaxed);
}

}  // namespace sluice
