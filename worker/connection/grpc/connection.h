// A connection over gRPC: the worker's door.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_
#define SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/encoding/encoding.h"
#include "common/security/credentials_source.h"
#include "common/trace/trace.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GrpcConnectionOptions {
  std::string address;  // gRPC target: "host:port" or "unix:/path"
  std::string token;    // empty if the server asks for none
  // For mutual TLS; empty: plaintext.
  CredentialsSource credentials;
  // How long to wait for a server that is not there yet.
  absl::Duration connect_timeout = absl::Seconds(60);
  // How long one wait for a step may last before PendingPull::Read gives DEADLINE_EXCEEDED.
  absl::Duration pull_timeout = absl::Seconds(60);
  Trace* trace = nullptr;  // of this process, if any; outlives the connection
  // TCP connections that share what is pushed and pulled, for models of so many times 4 MiB at
  // least; 0: one, or as many as are found to be faster. Of no use where memory is shared.
  int connections = 1;
  // Of the parameters that are pulled first. Unless it is plain, they come through the socket.
  Encoding pull_encoding;
};

// Connects; while the server is not there, waits and says so in the log. UNAVAILABLE names the
// address that was tried, for how long, and why it failed; other errors are those of the
// credentials.
absl::StatusOr<std::unique_ptr<ServerConnection>> ConnectOverGrpc(
    const GrpcConnectionOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_
