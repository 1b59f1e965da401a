// Which sessions have ended. Session ids count up, and each session ends some time, so it keeps
// ranges of ids: at most one more than there are sessions between them that have not ended.

#ifndef SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_
#define SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/ids.h"

namespace sluice {

// Externally synchronized.
class EndedSessions {
 public:
  void Add(SessionId session);
  bool Contains(SessionId session) const;

  size_t ranges() const { return ranges_.size(); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // first -> last; two ranges never touch
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_ENDED_SESSIONS_H_
