// The handler of PullParams: one object per pull.

#ifndef SLUICE_SERVER_RPC_PULL_H_
#define SLUICE_SERVER_RPC_PULL_H_

#include <grpcpp/grpcpp.h>

#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/lane_table.h"
#include "server/rpc/shared_memories.h"
#include "server/rpc/snapshot_chunks.h"

namespace sluice {

using PullLanes = LaneTable<SharedChunks>;

// Serves one call: waits in the store, perhaps waits in `limits`, then writes the snapshot's
// chunks. Its messages are the bytes of PullParamsRequest and PullParamsResponse. The reactor
// deletes itself when the call is done. `limits`, `chunks`, `lanes`, `memories` and `store` outlive
// the reactor.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePull(grpc::CallbackServerContext& context,
                                                      const grpc::ByteBuffer& request,
                                                      PullLimits& limits, SnapshotChunks& chunks,
                                                      PullLanes& lanes,
                                                      const SharedMemories& memories,
                                                      ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PULL_H_
