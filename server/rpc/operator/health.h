// gRPC's standard health service. Its answer is SERVING until the server drains, then NOT_SERVING,
// for the services of this server and for "". For another name Check() gets NOT_FOUND, and Watch()
// answers SERVICE_UNKNOWN.

#ifndef SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_
#define SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>

#include "server/rpc/operator/open_watches.h"

namespace sluice {

// `drains`: whether the server drains; any thread calls it. `watches` outlives the service.
std::unique_ptr<grpc::Service> MakeGrpcHealth(std::function<bool()> drains, OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_HEALTH_H_
