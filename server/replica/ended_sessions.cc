#include "server/replica/ended_sessions.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// The sessions of an incarnation have so many numbers.
constexpr uint64_t kMostSessions = uint64_t{1} << 32;

}  // namespace

absl::Status SessionHasEnded(SessionId session) {
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(), " has ended; join again"));
}

absl::Status SessionIsUnknown(SessionId session) {
  return MakeError(
      Reason::kUnknownSession,
      absl::StrCat("the first server has not told of session ", session.value(), "; join again"));
}

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

bool EndedSessions::IsOfEarlier(SessionId session) const {
  return base_.has_value() && session.value() - base_->value() - 1 >= kMostSessions;
}

absl::Status EndedSessions::WhyOver(SessionId session) const {
  if (Contains(session)) return SessionHasEnded(session);
  return IsOfEarlier(session) ? SessionIsUnknown(session) : absl::OkStatus();
}

}  // namespace sluice
