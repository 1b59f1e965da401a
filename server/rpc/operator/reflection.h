// gRPC's standard reflection service in the versions v1 and v1alpha. Today's grpcurl asks for v1
// first. The service describes the messages that are compiled into the server. gRPC's own plugin is
// not used, because it would serve reflection on all gRPC servers of the process, also on those of
// the program that contains this one.
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
