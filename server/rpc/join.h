// The handler of Join: one object per session, for as long as the session's stream is open.

#ifndef SLUICE_SERVER_RPC_JOIN_H_
#define SLUICE_SERVER_RPC_JOIN_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/rpc/access/session_owners.h"
#include "server/rpc/lane.h"
#include "server/rpc/shared_memories.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call from `connection`. It opens a session and writes the session's events. When the
// call ends, it reports the lost connection to the shard and removes the session from `owners`,
// `memories` and `lanes`. The reactor deletes itself when the call is done. These three and `shard`
// outlive it; `request` is read at once.
grpc::ServerWriteReactor<v1::JoinEvent>* ServeJoin(const v1::JoinRequest& request,
                                                   std::string connection, SessionOwners& owners,
                                                   SharedMemories& memories, Lanes& lanes,
                                                   Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_H_
