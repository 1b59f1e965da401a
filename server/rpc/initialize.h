// InitializeParams over gRPC.

#ifndef SLUICE_SERVER_RPC_INITIALIZE_H_
#define SLUICE_SERVER_RPC_INITIALIZE_H_

#include <grpcpp/grpcpp.h>

#include "server/shard/shard.h"

namespace sluice {

// Serves one call, whose messages are the bytes of InitializeParamsRequest and
// InitializeParamsResponse; the reactor owns itself. `shard` outlives it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeInitialize(grpc::ByteBuffer* response,
                                                           Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_INITIALIZE_H_
