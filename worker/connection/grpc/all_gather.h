// An exchange of bytes between all workers of a launch, through the server of their job.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_ALL_GATHER_H_
#define SLUICE_WORKER_CONNECTION_GRPC_ALL_GATHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

// The bytes that this worker gives; see AllGatherRequest for each field.
struct Gathering {
  uint64_t number = 1;
  uint32_t rank = 0;
  uint32_t size = 1;
  ProcessNonce nonce;
  absl::string_view data;
};

// Returns what all have given, in the order of ranks. Waits for the server as ConnectOverGrpc()
// does, and for the other workers for `wait`: then DEADLINE_EXCEEDED names those that are missing.
// UNAVAILABLE if the server is lost meanwhile. After both the call may be repeated. Other errors
// are those of the RPC; UNIMPLEMENTED if the server is too old.
absl::StatusOr<std::vector<std::string>> AllGatherOverGrpc(const GrpcConnectionOptions& options,
                                                           const Gathering& gathering,
                                                           absl::Duration wait);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_ALL_GATHER_H_
