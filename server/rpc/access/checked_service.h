// Stands in front of the services, and checks each call when its metadata have arrived: before its
// message is received, and before its method sees it.
//
// gRPC 1.51 has a hook for such checks, the auth metadata processor of credentials. Nobody may use
// it. For this hook gRPC encodes all metadata of the call. Any peer may send a key whose value gRPC
// cannot encode (grpclb_client_stats). gRPC then calls abort().

#ifndef SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_
#define SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/access/call_check.h"

namespace sluice {

// Finds the service that a call is for, among several with the same methods; null: the one that was
// checked. `joins`: whether the method opens a session. An error ends the call.
using ServiceFinder =
    std::function<absl::StatusOr<grpc::Service*>(const grpc::ServerContextBase&, bool joins)>;

struct ServiceRules {
  CallerCheck check;
  // In which the one request of a method must come that takes one.
  absl::Duration request;
  // If it is an error, calls of all methods but `served`, which pass CheckCall(), end with it.
  absl::Status refusal = absl::OkStatus();
  std::string served = {};
  ServiceFinder find = nullptr;  // null: there is one service
};

// Returns a service with the methods of `inner`, to be registered in its place. `described` names
// these methods in their order. `inner` outlives the service, and serves its methods by gRPC's
// callbacks. A call that passes CheckCall() goes on in `inner`, or in the service that is found. A
// call that ends without the one request that its method takes gets BAD_ARGUMENT, and
// DEADLINE_EXCEEDED if that has not come in time.
std::unique_ptr<grpc::Service> MakeCheckedService(
    grpc::Service& inner, const google::protobuf::ServiceDescriptor& described,
    const ServiceRules& rules);

// Answers calls of methods that no service has. The answer is the error of CheckCall(), if it has
// one, or UNIMPLEMENTED.
std::unique_ptr<grpc::CallbackGenericService> MakeUnknownMethods(RoleCheck roles);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_CHECKED_SERVICE_H_
