#include "server/rpc/join_turns.h"

#include <algorithm>
#include <utility>

namespace sluice {

void JoinTurns::Wait(const void* call, std::function<void()> go) {
  {
    absl::MutexLock lock(&mu_);
    calls_.push_back({call, go});
    if (calls_.size() > most_) return;
  }
  go();
}

void JoinTurns::Leave(const void* call) {
  std::function<void()> next;
  Entry left;  // destroyed after the lock is released
  {
    absl::MutexLock lock(&mu_);
    const auto it = std::find_if(calls_.begin(), calls_.end(),
                                 [call](const Entry& entry) { return entry.call == call; });
    if (it == calls_.end()) return;
    const bool had_turn = static_cast<size_t>(it - calls_.begin()) < most_;
    left = std::move(*it);
    calls_.erase(it);
    if (had_turn && calls_.size() >= most_) next = calls_[most_ - 1].go;
  }
  if (next) next();
}

}  // namespace sluice
