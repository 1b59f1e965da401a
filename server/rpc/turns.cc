#include "server/rpc/turns.h"

#include <utility>

namespace sluice {

Turn Turns::Add(const void* call, TurnOwner owner, std::function<void()> go) {
  absl::MutexLock lock(&mu_);
  size_t& of_owner = calls_of_[owner.name];
  if (of_owner >= owner.most) return Turn::kRefused;
  ++of_owner;
  const bool now = calls_.size() - waiting_.size() < most_;
  const auto place = now ? waiting_.end() : waiting_.insert(waiting_.end(), call);
  calls_.emplace(call, Call{std::move(owner.name), place, std::move(go)});
  return now ? Turn::kNow : Turn::kLater;
}

bool Turns::Cancel(const void* call) {
  Call cancelled;  // destroyed after the lock is released
  absl::MutexLock lock(&mu_);
  const auto it = calls_.find(call);
  if (it == calls_.end() || it->second.place == waiting_.end()) return false;
  cancelled = Remove(it);
  return true;
}

void Turns::Leave(const void* call) {
  std::function<void()> next;
  Call left;  // destroyed after the lock is released
  {
    absl::MutexLock lock(&mu_);
    const auto it = calls_.find(call);
    if (it == calls_.end()) return;
    const bool had_turn = it->second.place == waiting_.end();
    left = Remove(it);
    if (had_turn && !waiting_.empty()) next = TakeNext();
  }
  if (next) next();
}

Turns::Call Turns::Remove(Calls::iterator call) {
  Call removed = std::move(call->second);
  if (removed.place != waiting_.end()) waiting_.erase(removed.place);
  calls_.erase(call);
  const auto of_owner = calls_of_.find(removed.owner);
  if (--of_owner->second == 0) calls_of_.erase(of_owner);
  return removed;
}

std::function<void()> Turns::TakeNext() {
  Call& next = calls_.at(waiting_.front());
  waiting_.pop_front();
  next.place = waiting_.end();
  return std::move(next.go);
}

}  // namespace sluice
