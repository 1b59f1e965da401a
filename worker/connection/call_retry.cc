#include "worker/connection/call_retry.h"

#include <algorithm>

#include "common/base/error.h"

namespace sluice {
namespace {

// How long the stream of a session may take to end after the server did not answer another call. It
// goes on if only that call was lost.
constexpr absl::Duration kTimeForLastWords = absl::Milliseconds(100);

}  // namespace

bool IsLost(const absl::Status& status) {
  const Reason reason = ReasonOf(status);
  return reason == Reason::kUnknownSession ||
         ((absl::IsUnavailable(status) || absl::IsCancelled(status)) && reason == Reason::kNone);
}

absl::Duration PauseBeforeRejoin(int attempts) {
  constexpr absl::Duration kFirst = absl::Milliseconds(50);
  constexpr absl::Duration kLongest = absl::Seconds(5);
  constexpr int kDoublings = 7;  // until it is the longest
  if (attempts == 0) return absl::ZeroDuration();
  return std::min(kFirst * (1 << std::min(attempts - 1, kDoublings)), kLongest);
}

LastWords LastWordsOf(ServerConnection& connection) {
  LastWords told;
  for (;;) {
    const auto event = connection.NextEvent(kTimeForLastWords);
    if (!event.ok()) return told;
    const JobEvent::Kind kind = event->kind;
    const bool drains = kind == JobEvent::Kind::kDraining;
    if (drains || kind == JobEvent::Kind::kTrainingFinished) told.end = *event;
    told.evicted = kind == JobEvent::Kind::kEvicted;
    if (drains || told.evicted) return told;
  }
}

absl::optional<JobEvent> EndToldBy(ServerConnection& connection) {
  return LastWordsOf(connection).end;
}

bool IsCorrupt(const absl::Status& status) { return ReasonOf(status) == Reason::kCorruptChunk; }

}  // namespace sluice
