// The handler of PushGradients: one object per push.

#ifndef SLUICE_SERVER_RPC_PUSH_H_
#define SLUICE_SERVER_RPC_PUSH_H_

#include <grpcpp/grpcpp.h>

#include "common/encoding/transform_registry.h"
#include "server/aggregation/gathered_push.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/lane_table.h"
#include "server/rpc/shared_memories.h"

namespace sluice {

using PushLanes = LaneTable<GatheredPush>;

// Serves one call: the store judges the header, then the chunks are collected, then the store takes
// the gradient. Its messages are the bytes of PushGradientsRequest and PushGradientsResponse. The
// reactor deletes itself when the call is done; `memories`, `lanes`, `transforms` and `store`
// outlive it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePush(grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* response,
                                                     const SharedMemories& memories,
                                                     PushLanes& lanes,
                                                     const TransformRegistry& transforms,
                                                     ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PUSH_H_
