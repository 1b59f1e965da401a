// The names of a job's models.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_MODEL_NAMES_H_
#define SLUICE_WORKER_CONNECTION_GRPC_MODEL_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

// Returns the names of the models that have one, in ascending order. Waits for the server as
// ConnectOverGrpc() does; other errors are those of the RPC ListModels.
absl::StatusOr<std::vector<std::string>> ModelNamesOverGrpc(const GrpcConnectionOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_MODEL_NAMES_H_
