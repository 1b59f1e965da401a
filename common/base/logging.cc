#include "common/base/logging.h"

#include <glog/logging.h>
#include <signal.h>
#include <stdlib.h>

namespace sluice {

void InitLogging() {
  signal(SIGXFSZ, SIG_IGN);
  if (google::IsGoogleLoggingInitialized()) return;
  FLAGS_logtostderr = true;
  // gRPC logs what it also returns as a status.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  google::InitGoogleLogging("sluice");
}

}  // namespace sluice
