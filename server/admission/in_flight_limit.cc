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
    return inside_.size() < (may_use_all ? capacity_ : capacity_ - 1);
  };
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), may_enter);
  if (it == waiting_.end()) return absl::nullopt;
  absl::optional<Arriving> push = std::move(*it);
  waiting_.erase(it);
  inside_[push->header.session] = {push->rank, push->cancel, nullptr};
  return push;
}

void InFlightLimit::NoteArrived(SessionId session, ArrivedBytes arrived) {
  inside_[session].arrived = std::move(arrived);
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
