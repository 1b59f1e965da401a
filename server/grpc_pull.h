// PullParams over gRPC: one stream per pull.

#ifndef SLUICE_SERVER_GRPC_PULL_H_
#define SLUICE_SERVER_GRPC_PULL_H_

#include <grpcpp/grpcpp.h>

#include "server/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Serves one call; the reactor owns itself. `shard` outlives it.
grpc::ServerWriteReactor<v1::PullParamsResponse>* ServePull(const v1::PullParamsRequest& request,
                                                            Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_PULL_H_
