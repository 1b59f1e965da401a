#include "server/replica/ended_sessions.h"

#include <iterator>

namespace sluice {

void EndedSessions::Add(SessionId session) {
  if (Contains(session)) return;
  const uint64_t id = session.value();
  uint64_t last = id;
  auto next = ranges_.upper_bound(id);
  if (next != ranges_.end() && next->first - 1 == id) {
    last = next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin() && std::prev(next)->second + 1 == id) {
    std::prev(next)->second = last;
  } else {
    ranges_.emplace(id, last);
  }
}

bool EndedSessions::Contains(SessionId session) const {
  const auto after = ranges_.upper_bound(session.value());
  return after != ranges_.begin() && session.value() <= std::prev(after)->second;
}

}  // namespace sluice
