// The ParameterServer service, of the leader and of the other servers: checks what an observer may
// do, then starts the call's handler.

#ifndef SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_
#define SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/encoding/transform_registry.h"
#include "server/replica/replica.h"
#include "server/rpc/session_resources.h"
#include "server/shard/shard.h"

namespace sluice {

// Workers may use the encodings whose transforms `transforms` has. The parts of a request to join
// must come within `join_time`. `servers` is null if there is one server. `constants` is not null.
// The gRPC server calls the service from many threads. `shard` outlives it.
std::unique_ptr<grpc::Service> MakeGrpcParameterService(TransformRegistry transforms,
                                                        absl::Duration join_time,
                                                        JobServers servers,
                                                        std::shared_ptr<ConstantStore> constants,
                                                        Shard& shard);

// The same for a server that is not the leader: InitializeParams, PushGradients, PullParams,
// PullRows and the lanes. The other calls get NOT_FIRST_SERVER, which names `first_server`, an
// address. The service listens to the sessions of `replica`, which outlives it and executes its
// first command later.
std::unique_ptr<grpc::Service> MakeGrpcStripeService(TransformRegistry transforms,
                                                     std::string first_server, Replica& replica);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PARAMETER_SERVICE_H_
