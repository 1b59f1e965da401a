// The ParameterServer service, of the leader and of the other servers: checks what an observer may
// do, then starts the call's handler.

#ifndef SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_
#define SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "common/encoding/transform_registry.h"
#include "server/replica/replica.h"
#include "server/rpc/model_parts.h"
#include "server/rpc/model_services.h"

namespace sluice {

// The gRPC server calls the service from many threads.
std::unique_ptr<grpc::Service> MakeGrpcParameterService(const ModelServiceOptions& options,
                                                        const ModelParts& model);

// The same for a server that is not the leader: InitializeParams, PushGradients, PullParams,
// PullRows, PullSlots and the lanes. The other calls get NOT_FIRST_SERVER, which names
// `first_server`, an address. The service listens to the sessions of `replica`, which outlives it
// and executes its first command later.
std::unique_ptr<grpc::Service> MakeGrpcStripeService(TransformRegistry transforms,
                                                     std::string first_server, Replica& replica);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_
