// PullParams over gRPC: one stream per pull.

#ifndef SLUICE_SERVER_RPC_PULL_H_
#define SLUICE_SERVER_RPC_PULL_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/rpc/access/observer_pulls.h"
#include "server/rpc/lane_table.h"
#include "server/rpc/snapshot_chunks.h"
#include "server/shard/shard.h"

namespace sluice {

using PullLanes = LaneTable<SharedChunks>;

// Serves one call, whose messages are the bytes of PullParamsRequest and PullParamsResponse; the
// reactor owns itself, and `permit` until it is done. `chunks`, `lanes` and `shard` outlive it.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePull(const grpc::ByteBuffer& request,
                                                      const std::string& peer, PullPermit permit,
                                                      SnapshotChunks& chunks, PullLanes& lanes,
                                                      Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PULL_H_
