// Reads gRPC's counters of the connections of a server. gRPC calls this interface channelz.

#ifndef SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_
#define SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "server/rpc/listening/call_rules.h"

namespace sluice {

// Returns the peer of an accepted socket: the bytes of its IP address and port. Empty for a unix
// socket, where all peers look alike.
std::string PeerOf(int socket);

// Returns the number of the gRPC server that this process has started last, or 0 if there is none.
int64_t LatestGrpcServer();

// Returns the numbers above `after` that gRPC has given to open connections of a server, in
// ascending order. A TLS connection gets a number when its handshake is complete.
std::vector<int64_t> ConnectionNumbersOf(int64_t server, int64_t after);

// Returns the peer of a connection in the form of PeerOf(). Empty if the connection was closed.
std::string CountedPeerOf(int64_t connection);

// Returns how many bytes have arrived at a TCP socket; 0 for any other socket.
int64_t BytesReceivedBy(int socket);

// Returns the counters of the connection with this number, without bytes. Absent if there is none,
// or if it was closed.
absl::optional<CallCounts> CallsOf(int64_t connection);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_
