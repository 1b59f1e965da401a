#include "common/wire/grpc_runtime.h"

#include <grpc/grpc.h>
#include <stdlib.h>

namespace sluice {

void KeepGrpcRunning() {
  static const bool running = (grpc_init(), true);
  static_cast<void>(running);
}

void BoundReadBuffers() {
  // With this experiment gRPC ignores GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE.
  setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", 0);
}

}  // namespace sluice
