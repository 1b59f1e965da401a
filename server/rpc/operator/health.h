// gRPC's standard health service. It answers SERVING until the shard drains, then NOT_SERVING, for
// the services of this server and for "". Another name gets NOT_FOUND.

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
