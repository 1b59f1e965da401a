#include "common/wire/grpc_runtime.h"

#include <grpc/grpc.h>

namespace sluice {

void KeepGrpcRunning() {
  static const bool running = (grpc_init(), true);
  static_cast<void>(running);
}

}  // namespace sluice
