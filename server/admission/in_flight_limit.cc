#include "server/admission/in_flight_limit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice {

absl::optional<Arriving> InFlightLimit::LetIn(const absl::optional<Rank>& first_missing) {
  const uint64_t used = inside_.size() + journaled_;
  if (waiting_.empty() || used >= capacity_) return absl::nullopt;
  // Otherwise only the reserved vector is free.
  const bool any_may_enter = used < capacity_ - 1 || ReservedIsUsed(first_missing);
  const auto may_enter = [&](const Arriving& push) {
    return inside_.count(push.header.session) == 0 && (any_may_enter || push.rank == first_missing);
  };
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), may_enter);
  if (it == waiting_.end()) return absl::nullopt;
  absl::optional<Arriving> push = Take(it);
  inside_[push->header.session] = {push->rank, push->cancel, nullptr};
  return push;
}

bool InFlightLimit::ReservedIsUsed(const absl::optional<Rank>& first_missing) const {
  return first_missing.has_value() &&
         std::any_of(inside_.begin(), inside_.end(),
                     [&](const auto& entry) { return entry.second.rank == *first_missing; });
}

void InFlightLimit::Wait(Arriving push) {
  ++waiting_of_[push.header.session];
  waiting_.push_back(std::move(push));
}

bool InFlightLimit::MayWait(SessionId session) const {
  const auto found = waiting_of_.find(session);
  return found == waiting_of_.end() || found->second < kMostWaiting;
}

InFlightLimit::Queue::const_iterator InFlightLimit::Find(PushId push) const {
  const auto it =
      std::lower_bound(waiting_.begin(), waiting_.end(), push,
                       [](const Arriving& waiting, PushId id) { return waiting.id < id; });
  return it != waiting_.end() && it->id == push ? it : waiting_.end();
}

bool InFlightLimit::Cancel(PushId push) {
  const auto it = Find(push);
  if (it == waiting_.end()) return false;
  Take(it);
  return true;
}

Arriving InFlightLimit::Take(Queue::const_iterator push) {
  const auto it = waiting_.begin() + (push - waiting_.cbegin());
  Arriving taken = std::move(*it);
  waiting_.erase(it);
  const auto of_session = waiting_of_.find(taken.header.session);
  if (--of_session->second == 0) waiting_of_.erase(of_session);
  return taken;
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
  for (size_t i = 0; i < waiting_.size();) {
    if (leaves(waiting_[i])) {
      taken.push_back(Take(waiting_.begin() + i));
    } else {
      ++i;
    }
  }
  return taken;
}

uint64_t InFlightLimit::BytesOf(SessionId session) const {
  const auto it = inside_.find(session);
  if (it == inside_.end() || it->second.arrived == nullptr) return 0;
  return it->second.arrived->load(std::memory_order_relaxed);
}

}  // namespace sluice
