// The sessions that are over for a leader's log: those that have ended, and those of earlier
// incarnations. Session ids count up, and each session ends some time, so it keeps ranges of ids:
// at most one more than there are sessions between them that have not ended.

#ifndef SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_
#define SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

// UNKNOWN_SESSION: the session has ended, or the leader has not told of it.
absl::Status SessionHasEnded(SessionId session);
absl::Status SessionIsUnknown(SessionId session);

// Externally synchronized.
class EndedSessions {
 public:
  void Add(SessionId session);
  bool Contains(SessionId session) const;
  // The sessions of the leader's incarnation have the numbers after `base`. All others are of
  // earlier ones. Before, none is.
  void SetBase(SessionId base) { base_ = base; }
  bool IsOfEarlier(SessionId session) const;
  // One of the errors above if the session is over; OK if the log may tell of it.
  absl::Status WhyOver(SessionId session) const;

  size_t ranges() const { return ranges_.size(); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // first -> last; two ranges never touch
  absl::optional<SessionId> base_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_
