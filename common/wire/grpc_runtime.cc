#include "common/wire/grpc_runtime.h"

#include <grpc/grpc.h>
#include <stdlib.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {

void KeepGrpcRunning() {
  static const bool running = (grpc_init(), true);
  static_cast<void>(running);
}

void BoundReadBuffers() {
  // With this experiment gRPC ignores GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE.
  constexpr absl::string_view kExperiment = "tcp_read_chunks";
  const char* const chosen = getenv("GRPC_EXPERIMENTS");
  const std::string others = chosen == nullptr ? "" : chosen;
  if (absl::StrContains(others, kExperiment)) return;
  const std::string all = absl::StrCat(others, others.empty() ? "-" : ",-", kExperiment);
  setenv("GRPC_EXPERIMENTS", all.c_str(), 1);
}

}  // namespace sluice
