// InitializeParams over gRPC.

#ifndef SLUICE_SERVER_GRPC_INITIALIZE_H_
#define SLUICE_SERVER_GRPC_INITIALIZE_H_

#include <grpcpp/grpcpp.h>

#include "server/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call; the reactor owns itself. `shard` outlives it.
grpc::ServerReadReactor<v1::InitializeParamsRequest>* ServeInitialize(
    v1::InitializeParamsResponse* response, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_INITIALIZE_H_
