// PushGradients over gRPC: one stream per push.

#ifndef SLUICE_SERVER_GRPC_PUSH_H_
#define SLUICE_SERVER_GRPC_PUSH_H_

#include <grpcpp/grpcpp.h>

#include "server/shard.h"

namespace sluice {

// Serves one call, whose messages are the bytes of PushGradientsRequest and PushGradientsResponse;
// the reactor owns itself. `shard` outlives it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePush(grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* response, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_PUSH_H_
