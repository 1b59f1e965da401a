// Translates errors: an absl::Status to a gRPC status with google.rpc.ErrorInfo, and back.

#ifndef SLUICE_COMMON_WIRE_STATUS_H_
#define SLUICE_COMMON_WIRE_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace sluice {

// Both kinds of status use the same numbers for their codes. A Reason travels as an ErrorInfo with
// the domain "sluice". So does the payload "sluice/retry_after", a time as text, with it: see
// NAME_TAKEN in parameter_server.proto. A gRPC status without an ErrorInfo, or
// with one of another domain, becomes a status with Reason::kNone.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_STATUS_H_
