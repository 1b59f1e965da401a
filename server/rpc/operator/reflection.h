// gRPC's standard reflection service, in version v1, for which today's grpcurl asks first, and in
// v1alpha. It describes the messages that are compiled into the server. gRPC's own plugin would do
// the same for all servers of the process, also those that are the program's own.
//
// Both are subject to the table of roles (access/method_roles.h), and need no token.

#ifndef SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_
#define SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice {

// A service for each version. `services` are the full names of the services that are served. The
// gRPC server calls them from many threads.
std::vector<std::unique_ptr<grpc::Service>> MakeGrpcReflection(
    const std::vector<std::string>& services);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_
