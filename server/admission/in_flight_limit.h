// How many pushes may arrive at once, so that memory stays bounded however many workers push.
//
// A push that was let in holds one vector's room until its gradient is added up or given up. Others
// wait at their header: their streams are not read, which slows the senders down, and fails nobody.
// A session has one push under way. One vector is kept for the worker of the lowest rank that a
// step waits for, unless it is in already: in the order of ranks all others wait for it, and a full
// room must not lock it out.

#ifndef SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_
#define SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/pending_push.h"
#include "server/state/completions.h"

namespace sluice {

// A push at its header. `cancel` ends its stream; it is called at most once, if its session has
// ended after it was let in.
struct Arriving {
  PushHeader header;
  Rank rank;
  PushStartCallback start;
  std::function<void()> cancel;
};

// Externally synchronized.
class InFlightLimit {
 public:
  // Two that arrive at once, and the one that is kept.
  static constexpr uint32_t kFewest = 3;

  // For so many vectors, at least kFewest.
  explicit InFlightLimit(uint32_t capacity) : capacity_(capacity) {}

  void Wait(Arriving push) { waiting_.push_back(std::move(push)); }

  // The next push that may come in, which then is in; none if there is no room. `first_missing` is
  // the lowest rank that the step waits for, if any.
  absl::optional<Arriving> LetIn(const absl::optional<Rank>& first_missing);

  // Tells of the vector that is being filled for a push that was let in.
  void NoteArrived(SessionId session, ArrivedBytes arrived);

  // The push of that session has come whole: its stream needs no end any more.
  void NoteWhole(SessionId session) { inside_[session].cancel = nullptr; }

  // The push of that session is over, or its gradient was added up.
  void Release(SessionId session) { inside_.erase(session); }

  // Ends the streams of those inside whose session is not alive.
  void CancelEnded(const std::function<bool(SessionId)>& is_alive, Completions* completions);

  // Removes those that wait and have no business there any more.
  std::vector<Arriving> TakeWaiting(const std::function<bool(const Arriving&)>& leaves);

  // Whether no push is on its way in, or waits to be.
  bool empty() const { return inside_.empty() && waiting_.empty(); }

  // Bytes that have arrived of the session's push under way.
  uint64_t BytesOf(SessionId session) const;

 private:
  struct Inside {
    Rank rank;
    std::function<void()> cancel;  // null once called
    ArrivedBytes arrived;
  };

  const uint32_t capacity_;
  std::deque<Arriving> waiting_;
  std::map<SessionId, Inside> inside_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_
