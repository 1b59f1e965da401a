// A pull over gRPC, through the socket or from the server's shared memory.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PULL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PULL_H_

#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform_registry.h"
#include "common/trace/trace.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/memory_offer.h"
#include "worker/connection/server_connection.h"
#include "worker/connection/shared_parameters.h"

namespace sluice {

struct GrpcPullOptions {
  absl::Duration timeout;  // of one wait for a step
  CallMetadata metadata;
  Trace* trace = nullptr;  // of this process, if any; outlives the pull
  Encoding encoding;       // of the parameters; plain with shared memory
  LaneUse lanes;           // none with shared memory
  std::shared_ptr<const TransformRegistry> transforms;  // decode the parameters; never null
  // With several servers: learns from the answer whether this one reads it. May be null.
  std::shared_ptr<MemoryOffer> offer;
};

// Starts to ask for a step, and returns at once. `shared` is null if the parameters should come
// through the socket. `stub` and `shared` outlive the pull.
std::unique_ptr<PendingPull> StartGrpcPull(grpc::GenericStub& stub, const PullRequest& request,
                                           SharedParameters* shared,
                                           const GrpcPullOptions& options);

// Starts to ask for rows; see ServerConnection::StartRowPull(). `options` has no lanes.
// Only the trace outlives it.
std::unique_ptr<PendingPull> StartGrpcRowPull(grpc::GenericStub& stub, const PullRequest& request,
                                              const std::vector<RowIds>& rows,
                                              const GrpcPullOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PULL_H_
