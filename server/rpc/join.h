// Join over gRPC: one stream per session.

#ifndef SLUICE_SERVER_RPC_JOIN_H_
#define SLUICE_SERVER_RPC_JOIN_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/lane.h"
#include "server/rpc/shared_memories.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call; the reactor owns itself. What it is given outlives it.
grpc::ServerWriteReactor<v1::JoinEvent>* ServeJoin(const v1::JoinRequest& request,
                                                   SharedMemories& memories, Lanes& lanes,
                                                   Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_H_
