#include "server/state/active_pulls.h"

namespace sluice {

std::set<SessionId> ActivePulls::Sessions() const {
  std::set<SessionId> sessions;
  absl::MutexLock lock(&mu_);
  for (const auto& stream : streams_) sessions.insert(stream.first);
  return sessions;
}

void ActivePulls::Add(SessionId session) {
  absl::MutexLock lock(&mu_);
  ++streams_[session];
}

void ActivePulls::Remove(SessionId session) {
  absl::MutexLock lock(&mu_);
  const auto streams = streams_.find(session);
  if (--streams->second == 0) streams_.erase(streams);
}

}  // namespace sluice
