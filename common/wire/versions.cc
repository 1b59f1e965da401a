#include "common/wire/versions.h"

#include <grpcpp/grpcpp.h>

#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

std::vector<BuiltWith> WireVersions() {
  return {{"protocol", v1::JoinRequest::descriptor()->file()->package()},
          {"gRPC", grpc::Version()}};
}

}  // namespace sluice
