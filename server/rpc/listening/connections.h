// The open connections of the server: limits their number, and closes those that break a rule.

#ifndef SLUICE_SERVER_RPC_LISTENING_CONNECTIONS_H_
#define SLUICE_SERVER_RPC_LISTENING_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "server/rpc/listening/call_rules.h"
#include "server/rpc/listening/counted_calls.h"

namespace sluice {

struct ConnectionLimits {
  // Connections that may be open at once, in all and from one IP address.
  size_t in_all = 0;
  size_t of_one_address = 0;
  CallRules calls;
};

// It holds a second descriptor of each connection, with which it can close a connection that gRPC
// has taken. Externally synchronized.
class Connections {
 public:
  explicit Connections(const ConnectionLimits& limits) : limits_(limits) {}

  // Returns why no further connection of `peer` (see PeerOf()) may be added, or an empty text if
  // one may.
  std::string WhyFull(const std::string& peer) const;

  // Adds a connection. `handle` is the descriptor by which it is closed.
  void Add(FileDescriptor handle, const std::string& peer, absl::Duration now);
  // The connection with this handle has ended.
  void Remove(int handle);

  // Asks gRPC which numbers it has given to connections of its `server` since the last call. On a
  // unix socket all peers look alike, so there it must be called after each Add().
  void Learn(int64_t server);

  // Judges all connections, or only those at which many bytes have arrived since they were judged,
  // or only those that have begun no call. Closes those that break a rule, and returns why: one
  // sentence for each.
  enum class Which { kAll, kGrown, kWithoutCall };
  std::vector<std::string> Judge(Which which, absl::Duration now);

  // When a connection that begins no call has to be judged; infinite: never.
  absl::Duration next_due() const;
  size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    FileDescriptor handle;
    std::string peer;
    int64_t number = 0;  // gRPC's; 0: not known yet
    bool closed = false;
    CallJudge judge;
    int64_t judged_bytes = 0;  // bytes that had arrived when it was judged
  };

  void SetNumber(int64_t number, const std::string& peer);
  bool IsDue(const Connection& connection, Which which, absl::Duration now) const;
  static std::string JudgeOne(Connection& connection, absl::Duration now);

  const ConnectionLimits limits_;
  std::set<int64_t> seen_;                      // gRPC's latest numbers
  std::map<uint64_t, Connection> connections_;  // in the order in which they were added
  std::map<int, uint64_t> by_handle_;           // keys of connections_
  std::map<std::string, size_t> of_address_;    // how many there are
  uint64_t next_ = 0;
};

// The peer as people write it: "10.0.0.7", "2001:db8::1", or "a unix socket".
std::string ShownPeer(const std::string& peer);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_CONNECTIONS_H_
