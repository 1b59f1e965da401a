// A push over gRPC: one stream, and one for each of its lanes.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/tensor/shared_memory.h"
#include "common/trace/trace.h"
#include "common/wire/chunk.h"
#include "worker/connection/connection_chooser.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GrpcPushOptions {
  std::string token;  // empty if the server asks for none
  // That the server reads: of what lies there, only the place is sent. Null if there is none.
  std::shared_ptr<const SharedMemory> memory;
  Trace* trace = nullptr;                 // of this process, if any; outlives the push
  Checksums checksums = Checksums::kOff;  // of what is not encoded
  LaneUse lanes;                          // none with `memory`
  // Told how long the push took, unless it is null; outlives it.
  ConnectionChooser* chooser = nullptr;
};

// As ServerConnection::StartPush. `stub` outlives it.
std::unique_ptr<OutgoingPush> StartGrpcPush(grpc::GenericStub& stub, const PushHeader& header,
                                            uint64_t elements, BatchIs batch,
                                            const GrpcPushOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PUSH_H_
