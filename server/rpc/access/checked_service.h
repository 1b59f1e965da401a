// Stands in front of the services, and checks each call when its metadata have arrived: before its
// message is received, and before its method sees it.
//
// gRPC 1.51 has a hook for such checks, the auth metadata processor of credentials. Nobody may use
// it: for it, gRPC encodes all metadata of the call, and there is a key that any peer may send
// (grpclb_client_stats) whose value has no encoding, so that gRPC calls abort().

#ifndef SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_
#define SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/access/call_check.h"

namespace sluice {

// Returns a service that is registered in place of `inner`, with the same methods, which
// `described` names in their order. `inner` outlives it, and serves its methods by gRPC's
// callbacks. A call that passes CheckCall() goes on in `inner`. A call that ends without the one
// request that its method takes gets BAD_ARGUMENT.
std::unique_ptr<grpc::Service> MakeCheckedService(
    grpc::Service& inner, const google::protobuf::ServiceDescriptor& described, RoleCheck roles);

// Answers the calls of all methods that no service has: with what CheckCall() says, or
// UNIMPLEMENTED.
std::unique_ptr<grpc::CallbackGenericService> MakeUnknownMethods(RoleCheck roles);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_
