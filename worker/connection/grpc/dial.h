// Waits for a server.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_DIAL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_DIAL_H_

#include "absl/status/statusor.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

// Returns a channel that is connected to the server at `options.address`. Waits for it, and fails,
// as ConnectOverGrpc() does.
absl::StatusOr<GrpcChannel> DialChannel(const GrpcConnectionOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_DIAL_H_
