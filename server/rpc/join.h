// The handlers of Join and JoinInParts: one object per session, for as long as the session's stream
// is open.

#ifndef SLUICE_SERVER_RPC_JOIN_H_
#define SLUICE_SERVER_RPC_JOIN_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/session_resources.h"
#include "server/rpc/turns.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call from `connection`. It opens a session and writes the session's events, which are
// the bytes of JoinEvent. When the call ends, it reports the lost connection to the shard and ends
// the session in `resources`. The reactor deletes itself when the call is done. `resources` and
// `shard` outlive it; `request` is read at once.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeJoin(const v1::JoinRequest& request,
                                                      std::string connection,
                                                      SessionResources& resources, Shard& shard);

// How many requests are received in parts at once: of callers that may train, and of callers that
// may only observe, who so cannot hold up workers.
inline constexpr size_t kJoinsOfWorkers = 2;
inline constexpr size_t kJoinsOfObservers = 1;
// How many calls of JoinInParts one connection may have that are received or wait: the current one,
// and an earlier one whose end the server has not noticed yet. All connections through a unix
// socket count as one, so they may have more.
inline constexpr size_t kJoinsOfConnection = 2;
inline constexpr size_t kJoinsOfUnixSockets = 1024;

// How a request in parts is received.
struct JoinInPartsOptions {
  std::string connection;
  // Decides whether the caller may join with the whole request. Called until the call is done.
  std::function<absl::Status(const v1::JoinRequest&)> may_join;
  Turns& turns;         // when to receive; outlives the call
  absl::Duration time;  // in which the parts must come, from the call's turn on
};

// The same for a request in parts (common/wire/join.h). Its parts are received, and the call keeps
// them, only while it has its turn. UNAVAILABLE if the connection has kJoinsOfConnection already.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeJoinInParts(
    JoinInPartsOptions options, SessionResources& resources, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_H_
