// gRPC's standard health service: SERVING until the shard drains, then NOT_SERVING. For the
// services of this server and ""; another name gets NOT_FOUND.

#ifndef SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_
#define SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/shard/shard.h"

namespace sluice {

// `shard` outlives the service.
std::unique_ptr<grpc::Service> MakeGrpcHealth(const Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_
