// A push over gRPC: one stream on the worker's connection, and one on each lane.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>

#include "common/encoding/transform_registry.h"
#include "common/tensor/shared_memory.h"
#include "common/trace/trace.h"
#include "common/wire/chunk.h"
#include "worker/connection/connection_chooser.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GrpcPushOptions {
  CallMetadata metadata;
  // Memory that the server reads: only the place of its elements is sent. Null if there is none.
  std::shared_ptr<const SharedMemory> memory;
  Trace* trace = nullptr;                 // of this process, if any; outlives the push
  Checksums checksums = Checksums::kOff;  // of chunks that are not encoded
  LaneUse lanes;                          // none with `memory`
  std::shared_ptr<const TransformRegistry> transforms;  // encode rows; never null
  // Learns how long the push took, unless it is null. Outlives the push.
  ConnectionChooser* chooser = nullptr;
};

// See ServerConnection::StartPush. `stub` outlives the push.
std::unique_ptr<OutgoingPush> StartGrpcPush(grpc::GenericStub& stub, const PushHeader& header,
                                            uint64_t elements, BatchIs batch,
                                            const RowGradients& rows,
                                            const GrpcPushOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_
