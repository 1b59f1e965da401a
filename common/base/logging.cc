#include "common/base/logging.h"

#include <glog/logging.h>
#include <stdlib.h>

namespace sluice {

void InitLogging() {
  if (google::IsGoogleLoggingInitialized()) return;
  FLAGS_logtostderr = true;
  // gRPC logs what it also returns as a status.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  google::InitGoogleLogging("sluice");
}

}  // namespace sluice
