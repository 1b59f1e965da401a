// The handler of PushPull: one object per call.

#ifndef SLUICE_SERVER_RPC_PUSH_PULL_H_
#define SLUICE_SERVER_RPC_PUSH_PULL_H_

#include <grpcpp/grpcpp.h>

#include "common/encoding/transform_registry.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/shared_memories.h"
#include "server/rpc/snapshot_chunks.h"

namespace sluice {

// Serves one call: the store judges the header and takes the gradient, as in ServePush(), and then
// gives the parameters, as in ServePull(). They are copied into the answer, so a slow reader keeps
// no step in memory. The message that is read is the bytes of a PushPullRequest, and `response`
// gets those of a PushPullResponse. The reactor deletes itself when the call is done; all other
// arguments but the context outlive it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePushPull(grpc::CallbackServerContext& context,
                                                         grpc::ByteBuffer* response,
                                                         PullLimits& limits, SnapshotChunks& chunks,
                                                         const SharedMemories& memories,
                                                         const TransformRegistry& transforms,
                                                         ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PUSH_PULL_H_
