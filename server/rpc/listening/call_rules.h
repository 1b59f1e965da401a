// How many calls one connection may have, and when it must begin one.
//
// gRPC 1.51 keeps the limit on open calls only for a client that acknowledges its settings, and
// counts a call as ended as soon as the client resets it. What the call has taken is freed later:
// not before the thread that reads the connection has nothing more to read. So the acceptor judges
// the connections by the numbers that gRPC counts.

#ifndef SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_
#define SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace sluice {

// What gRPC has counted on a connection since it was opened.
struct CallCounts {
  int64_t begun = 0;
  int64_t ended = 0;   // in both directions
  int64_t broken = 0;  // reset, by either side
};

struct CallRules {
  // Calls of one connection that have begun, and of which gRPC has seen no end.
  int64_t open = 1024;
  // Calls of one connection that may be broken at once, and in each second from then on.
  int64_t broken = 4000;
  // A connection that has begun no call for so long is closed.
  absl::Duration first_call = absl::Seconds(20);
};

// Judges one connection. Externally synchronized. Times come from one monotonic clock.
class CallJudge {
 public:
  // The connection was accepted at `now`.
  CallJudge(const CallRules& rules, absl::Duration now)
      : rules_(rules), accepted_(now), judged_(now), allowance_(rules.broken) {}

  // Why the connection has to be closed; empty if it may stay.
  std::string Judge(const CallCounts& counts, absl::Duration now);

  // The connection may stay without a call.
  void Excuse() { has_called_ = true; }
  // True until Judge() has seen a call.
  bool awaits_first_call() const { return !has_called_; }
  // When the connection has to be judged, if it begins no call.
  absl::Duration first_call_due() const { return accepted_ + rules_.first_call; }

 private:
  bool BrokeTooMany(int64_t broken, absl::Duration now);

  const CallRules rules_;
  const absl::Duration accepted_;
  absl::Duration judged_;
  int64_t broken_ = 0;
  double allowance_;  // calls that may be broken now
  bool has_called_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_
