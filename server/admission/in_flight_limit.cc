#include "server/admission/in_flight_limit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice {

absl::optional<Arriving> InFlightLimit::LetIn(const absl::optional<Rank>& first_missing,
                                              ReductionOrder order) {
  if (waiting_.empty()) return absl::nullopt;
  const uint64_t used = inside_.size() + journaled_;
  const bool full = used >= capacity_;
  EndExcess();
  // All that are in flight may be held until the reserved one is there.
  if (full && (inside_.size() >= most_ || ReservedIsUsed(first_missing))) return absl::nullopt;
  // Otherwise only the reserved vector is free.
  const bool any_may_enter = !full && (used < capacity_ - 1 || ReservedIsUsed(first_missing));
  const Queue::iterator next =
      any_may_enter ? FirstWaiting(order) : FirstWaitingOf(first_missing.value_or(Rank()));
  if (next == waiting_.end()) return absl::nullopt;
  absl::optional<Arriving> push = Take(next);
  inside_[push->header.session] = {push->rank, push->cancel, nullptr};
  return push;
}

void InFlightLimit::SetCapacity(uint32_t capacity) {
  EndExcess();
  if (capacity < capacity_ && inside_.size() >= capacity) {
    const size_t most = inside_.size() + 1;
    most_ = most_ == 0 ? most : std::min(most_, most);
  }
  capacity_ = capacity;
}

void InFlightLimit::EndExcess() {
  if (inside_.size() < capacity_) most_ = 0;
}

bool InFlightLimit::IsInside(Queue::const_iterator push) const {
  return inside_.count(push->second.header.session) > 0;
}

InFlightLimit::Queue::iterator InFlightLimit::FirstWaiting(ReductionOrder order) {
  if (order == ReductionOrder::kRank) return FirstWaitingFrom({Rank(), PushId()});
  auto push = waiting_.begin();
  while (push != waiting_.end() && IsInside(push)) ++push;
  return push;
}

InFlightLimit::Queue::iterator InFlightLimit::FirstWaitingFrom(const Turn& turn) {
  for (auto it = turns_.lower_bound(turn); it != turns_.end(); ++it) {
    const auto push = waiting_.find(it->second);
    if (!IsInside(push)) return push;
  }
  return waiting_.end();
}

InFlightLimit::Queue::iterator InFlightLimit::FirstWaitingOf(const Rank& rank) {
  const auto push = FirstWaitingFrom({rank, PushId()});
  return push != waiting_.end() && push->second.rank == rank ? push : waiting_.end();
}

bool InFlightLimit::ReservedIsUsed(const absl::optional<Rank>& first_missing) const {
  return first_missing.has_value() &&
         std::any_of(inside_.begin(), inside_.end(),
                     [&](const auto& entry) { return entry.second.rank == *first_missing; });
}

void InFlightLimit::Wait(Arriving push) {
  ++waiting_of_[push.header.session];
  turns_.emplace(push.rank, push.id);
  const PushId id = push.id;
  waiting_.emplace(id, std::move(push));
}

bool InFlightLimit::MayWait(SessionId session) const {
  const auto found = waiting_of_.find(session);
  return found == waiting_of_.end() || found->second < kMostWaiting;
}

bool InFlightLimit::Cancel(PushId push) {
  const auto it = waiting_.find(push);
  if (it == waiting_.end()) return false;
  Take(it);
  return true;
}

Arriving InFlightLimit::Take(Queue::iterator push) {
  Arriving taken = std::move(push->second);
  waiting_.erase(push);
  turns_.erase({taken.rank, taken.id});
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
  for (auto push = waiting_.begin(); push != waiting_.end(); ++push) {
    if (!IsInside(push)) served.push_back(push->second.header.session);
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
    const auto push = it++;
    if (leaves(push->second)) taken.push_back(Take(push));
  }
  return taken;
}

uint64_t InFlightLimit::BytesOf(SessionId session) const {
  const auto it = inside_.find(session);
  if (it == inside_.end() || it->second.arrived == nullptr) return 0;
  return it->second.arrived->load(std::memory_order_relaxed);
}

}  // namespace sluice
