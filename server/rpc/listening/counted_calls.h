// Reads what gRPC counts about the connections of a server (gRPC calls this interface channelz).

#ifndef SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_
#define SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "server/rpc/listening/call_rules.h"

namespace sluice {

// The peer of an accepted socket: the bytes of the IP address and the port; empty for a unix
// socket, where all peers look alike.
std::string PeerOf(int socket);

// The number of the gRPC server of this process that was started last; 0: there is none.
int64_t LatestGrpcServer();

// The numbers above `after` that gRPC has given to open connections of a server, in ascending
// order. A TLS connection has a number once its handshake is complete.
std::vector<int64_t> ConnectionNumbersOf(int64_t server, int64_t after);

// The peer of that connection, as PeerOf() its descriptor. Empty if it was closed.
std::string CountedPeerOf(int64_t connection);

// Absent if the connection was closed, or if there is none with this number.
absl::optional<CallCounts> CallsOf(int64_t connection);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_COUNTED_CALLS_H_
