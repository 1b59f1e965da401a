// PushGradients over gRPC: one stream per push.

#ifndef SLUICE_SERVER_GRPC_PUSH_H_
#define SLUICE_SERVER_GRPC_PUSH_H_

#include <grpcpp/grpcpp.h>

#include "server/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call; the reactor owns itself. `shard` outlives it.
grpc::ServerReadReactor<v1::PushGradientsRequest>* ServePush(grpc::CallbackServerContext* context,
                                                             v1::PushGradientsResponse* response,
                                                             Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_PUSH_H_
