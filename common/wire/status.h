// Errors between absl::Status and the wire: a gRPC status with google.rpc.ErrorInfo.

#ifndef SLUICE_COMMON_WIRE_STATUS_H_
#define SLUICE_COMMON_WIRE_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace sluice {

// The codes are the same numbers on both sides. A Reason travels as ErrorInfo{reason, domain
// "sluice"}; what comes back without one, or from another domain, has Reason::kNone.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_STATUS_H_
