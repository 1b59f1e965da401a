// The ParameterServer service of a server that holds a stripe: InitializeParams, PushGradients,
// PullParams, PullRows and the lanes. The first server has the other calls.

#ifndef SLUICE_SERVER_RPC_STRIPE_SERVICE_H_
#define SLUICE_SERVER_RPC_STRIPE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "common/encoding/transform_registry.h"
#include "server/shard/held_stripe.h"

namespace sluice {

// NOT_FIRST_SERVER names `first_server`, an address. The service listens to the sessions of
// `stripe`, which outlives it and executes its first command later.
std::unique_ptr<grpc::Service> MakeGrpcStripeService(TransformRegistry transforms,
                                                     std::string first_server, HeldStripe& stripe);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_STRIPE_SERVICE_H_
