// The handlers of Join and JoinInParts: one object per session, for as long as the session's stream
// is open.

#ifndef SLUICE_SERVER_RPC_JOIN_H_
#define SLUICE_SERVER_RPC_JOIN_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/join_turns.h"
#include "server/rpc/session_resources.h"
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

// How a request in parts is received.
struct JoinInPartsOptions {
  std::string connection;
  // Decides whether the caller may join with the whole request. Called until the call is done.
  std::function<absl::Status(const v1::JoinRequest&)> may_join;
  JoinTurns& turns;     // when to receive; outlives the call
  absl::Duration time;  // in which the parts must come, from the call's turn on
};

// The same for a request in parts (common/wire/join.h). Its parts are received, and the call keeps
// them, only while it has its turn.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeJoinInParts(
    JoinInPartsOptions options, SessionResources& resources, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_H_
