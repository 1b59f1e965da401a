// The rules for the calls of one connection: how many there may be, and when the first must begin.
//
// gRPC 1.51 enforces its limit on open calls only for a client that acknowledges its settings. It
// counts a call as ended as soon as the client resets it, but frees the call's memory only when the
// thread that reads the connection has nothing more to read. It bounds the frames of a call's
// metadata, and not their sum. So the acceptor judges the connections by gRPC's own counters, and
// by the bytes that have arrived.

#ifndef SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_
#define SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace sluice {

// gRPC's counters of the calls of a connection, since the connection was opened.
struct CallCounts {
  int64_t begun = 0;
  int64_t ended = 0;     // in both directions
  int64_t broken = 0;    // reset, by either side
  int64_t messages = 0;  // messages that have arrived whole
  int64_t bytes = 0;     // bytes that have arrived; 0: the system does not tell
};

struct CallRules {
  // The most calls of one connection that have begun and have not ended.
  int64_t open = 1024;
  // The most calls of one connection that may be broken off at once, and in each second after that.
  int64_t broken = 4000;
  // The most bytes that may arrive while no new call begins and no message ends. So 16 of the
  // largest messages may be under way at once.
  int64_t unfinished = int64_t{64} << 20;
  // A connection that has begun no call for so long is closed.
  absl::Duration first_call = absl::Seconds(20);
};

// Judges one connection. Externally synchronized. Times come from one monotonic clock.
class CallJudge {
 public:
  // The connection was accepted at `now`.
  CallJudge(const CallRules& rules, absl::Duration now)
      : rules_(rules), accepted_(now), judged_(now), allowance_(rules.broken) {}

  // Returns why the connection has to be closed, or an empty text if it may stay.
  std::string Judge(const CallCounts& counts, absl::Duration now);

  // The connection may stay without a call.
  void Excuse() { has_called_ = true; }
  // True until Judge() has seen a call.
  bool awaits_first_call() const { return !has_called_; }
  // When the connection has to be judged, if it begins no call.
  absl::Duration first_call_due() const { return accepted_ + rules_.first_call; }

 private:
  bool BrokeTooMany(int64_t broken, absl::Duration now);
  int64_t UnfinishedBytes(const CallCounts& counts);

  const CallRules rules_;
  const absl::Duration accepted_;
  absl::Duration judged_;
  int64_t broken_ = 0;
  CallCounts finished_;  // at the latest Judge() that saw a new call or the end of a message
  double allowance_;     // calls that may be broken now
  bool has_called_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_CALL_RULES_H_
