// The handler of Join: one object per session, for as long as the session's stream is open.

#ifndef SLUICE_SERVER_RPC_JOIN_H_
#define SLUICE_SERVER_RPC_JOIN_H_

#include <grpcpp/grpcpp.h>

#include <string>

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

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_H_
