// Limits how many pushes are in flight, so that memory stays bounded for any number of workers.
//
// An admitted push holds the memory of one vector until its gradient is accumulated or the push
// ends. Other pushes wait at their header: the server does not read their streams, so HTTP/2 slows
// the senders. A worker that sends one push after the other gets no error. A session has at most
// one push in flight.
//
// A step that the journal holds in memory, because it is not on the disk yet, also occupies a
// vector.
//
// In rank order a gradient is held until those of all lower ranks are accumulated. So the waiting
// push of the lowest rank is admitted first, and one vector is reserved for the worker of the
// lowest rank that the step waits for: it gets in even if all other vectors are held.

#ifndef SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_
#define SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/pending_push.h"
#include "server/state/completions.h"
#include "server/state/shard_status.h"

namespace sluice {

// The end of a push's wait at its header.
struct Admission {
  PushId push;         // admitted: its gradient may be sent; 0 if the push is answered without it
  PushOutcome answer;  // only if `push` is 0
  PushHeader header;   // the rest: only of an admitted push
  std::shared_ptr<std::atomic<uint64_t>> arrived;  // is to count the bytes that arrive
  // Its gradient is expected to be the first of several in the step's sum. No decision depends on
  // it.
  bool begins_sum = false;
};

// Called once, or never if the push was cancelled, outside all locks, from any thread.
using AdmissionCallback = std::function<void(const absl::StatusOr<Admission>&)>;

// A push that waits at its header. `cancel` closes its stream. It is called at most once, if the
// session ends while the push is arriving.
struct Arriving {
  PushId id;
  PushHeader header;
  Rank rank;
  AdmissionCallback start;
  std::function<void()> cancel;
};

// Externally synchronized; PushAdmission owns it. Callbacks run through Completions.
class InFlightLimit {
 public:
  // The least capacity: two vectors for any worker, and the reserved one.
  static constexpr uint32_t kFewest = 3;

  // `capacity` is the number of vectors, at least kFewest.
  explicit InFlightLimit(uint32_t capacity) : capacity_(capacity) {}

  // Changes the capacity. Pushes in flight stay, even if they are more than the new capacity. As
  // long as they fill it, one more may enter: that of the lowest rank that the step waits for.
  void SetCapacity(uint32_t capacity);

  // The most pushes of one session that may wait. A worker sends one push after the other; further
  // ones are repeats of a push whose first call has not ended yet. Each holds its header and
  // attachments, and in PushPull its gradient.
  static constexpr size_t kMostWaiting = 4;

  // Lets the push wait. The caller has checked MayWait().
  void Wait(Arriving push);

  // Whether fewer than kMostWaiting pushes of the session wait.
  bool MayWait(SessionId session) const;

  // Whether that push waits.
  bool Waits(PushId push) const { return waiting_.count(push) > 0; }

  // Removes a push whose stream has ended. Returns false if it does not wait any more.
  bool Cancel(PushId push);

  // Sets how many vectors the journal holds.
  void SetJournaled(uint64_t vectors) { journaled_ = vectors; }

  // Admits and returns a waiting push: the first to come or, in rank order, the one of the lowest
  // rank. Returns nothing if none may enter. `first_missing` is the lowest rank that the step waits
  // for, if any.
  absl::optional<Arriving> LetIn(const absl::optional<Rank>& first_missing, ReductionOrder order);

  // Sets the counter of bytes that have arrived of the session's admitted push.
  void NoteArrived(SessionId session, ArrivedBytes arrived);

  // The session's push is complete. Its stream needs no cancel any more.
  void NoteWhole(SessionId session);

  // The session's push ended, or its gradient was accumulated.
  void Release(SessionId session) { inside_.erase(session); }

  // Closes the streams of admitted pushes whose session is not open.
  void CancelEnded(const std::function<bool(SessionId)>& is_alive, Completions* completions);

  // The sessions of admitted pushes of which bytes have arrived since the last call.
  std::vector<SessionId> TakeHeard();

  // The sessions that wait for this server: either their push waits and they have no other push in
  // flight, or their push is complete and not accumulated.
  std::vector<SessionId> Served() const;

  // Removes and returns the waiting pushes for which `leaves` is true.
  std::vector<Arriving> TakeWaiting(const std::function<bool(const Arriving&)>& leaves);

  // Whether no push is admitted or waits.
  bool empty() const { return inside_.empty() && waiting_.empty(); }

  // The status for people, if a vector has so many bytes.
  InFlightStatus Describe(uint64_t vector_bytes) const {
    return {(inside_.size() + journaled_) * vector_bytes, capacity_ * vector_bytes,
            waiting_.size()};
  }

  // The number of bytes of the session's admitted push that have arrived.
  uint64_t BytesOf(SessionId session) const;

 private:
  struct Inside {
    Rank rank;
    std::function<void()> cancel;  // null after it was called
    ArrivedBytes arrived;
    uint64_t heard = 0;  // bytes that had arrived when TakeHeard() looked
    bool whole = false;
  };

  using Queue = std::map<PushId, Arriving>;
  using Turn = std::pair<Rank, PushId>;

  // Of those whose session has no push in flight: the first to enter, the first at or after
  // `turn`, and the first of a rank. The end of `waiting_` if there is none.
  Queue::iterator FirstWaiting(ReductionOrder order);
  Queue::iterator FirstWaitingFrom(const Turn& turn);
  Queue::iterator FirstWaitingOf(const Rank& rank);
  // Whether the session of that waiting push has another one in flight.
  bool IsInside(Queue::const_iterator push) const;
  bool ReservedIsUsed(const absl::optional<Rank>& first_missing) const;
  Arriving Take(Queue::iterator push);
  // Sets most_ to 0 if fewer are in flight than the capacity.
  void EndExcess();

  uint32_t capacity_;
  size_t most_ = 0;  // in flight, as long as they exceed a smaller SetCapacity(); else 0
  uint64_t journaled_ = 0;
  Queue waiting_;
  std::set<Turn> turns_;                    // those that wait, in order of their ranks
  std::map<SessionId, size_t> waiting_of_;  // how many wait, of sessions with any
  std::map<SessionId, Inside> inside_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_IN_FLIGHT_LIMIT_H_
