// gRPC's standard reflection service, version 1. Today's grpcurl asks for it first. It describes
// the messages that are compiled into the server.
//
// gRPC's own plugin serves the older version v1alpha beside it. Both are subject to the table of
// roles (access/method_roles.h), and need no token.

#ifndef SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_
#define SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice {

// `services` are the full names of the services that are served. The gRPC server calls the service
// from many threads.
std::unique_ptr<grpc::Service> MakeGrpcReflection(std::vector<std::string> services);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_REFLECTION_H_
