// The service Admin on a server that is not the first one of its job: it refuses each call, and
// names the first server.

#ifndef SLUICE_SERVER_RPC_OPERATOR_REFUSING_ADMIN_H_
#define SLUICE_SERVER_RPC_OPERATOR_REFUSING_ADMIN_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

namespace sluice {

// Callers must present `token`, unless it is empty; then each call ends with NOT_FIRST_SERVER.
// `first_server` is an address, for people. gRPC's threads call the service.
std::unique_ptr<grpc::Service> MakeGrpcRefusingAdmin(std::string token, std::string first_server);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_REFUSING_ADMIN_H_
