// A push and a pull over gRPC in one call.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PUSH_PULL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PUSH_PULL_H_

#include <grpcpp/generic/generic_stub.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/wire/chunk.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GrpcPushPullOptions {
  absl::Duration timeout;  // of the wait for a step
  CallMetadata metadata;
  Checksums checksums = Checksums::kOff;  // of the gradient
};

// See ServerConnection::PushPull(). The vector has at most kMostPushPullElements.
absl::StatusOr<PushPullAnswer> GrpcPushPull(grpc::GenericStub& stub, const PushHeader& header,
                                            const SharedFloats& gradient,
                                            const PullRequest& request,
                                            absl::Span<float> parameters,
                                            const GrpcPushPullOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PUSH_PULL_H_
