// A ServerConnection over gRPC.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_
#define SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/security/credentials_source.h"
#include "common/trace/trace.h"
#include "common/wire/versions.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GrpcConnectionOptions {
  std::string address;  // gRPC target: "host:port" or "unix:/path"
  std::string token;    // empty if the server asks for none
  std::string model;    // of a job that has several; empty: the one without a name
  // For mutual TLS; empty: plaintext.
  CredentialsSource credentials;
  // How long to wait for a server that cannot be reached.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Whether one launch has started the server and this process. If the server cannot be reached,
  // the error then says that the server has ended, because it ran at the start.
  bool launched = false;
  // Called every few seconds in which the server cannot be reached. An error ends the wait. May be
  // null.
  std::function<absl::Status()> check;
  // How long one pull waits for a step before PendingPull::Read returns DEADLINE_EXCEEDED.
  absl::Duration pull_timeout = absl::Seconds(60);
  Trace* trace = nullptr;  // of this process, if any; outlives the connection
  // TCP connections that share the tensors. 0: chosen by measurement. A model gets at most one for
  // each 4 MiB, and one if memory is shared.
  int connections = 1;
  // Whether TCP is not shared with other connections of this process to the same address. gRPC
  // shares it where it may. A unix socket never is.
  bool own_connection = false;
  // Whether a push and a pull of a small vector may be one call. Benchmarks compare it with two.
  bool one_call = true;
  // The encoding of pulled parameters, until UsePullEncoding() changes it. Parameters that are
  // encoded go through the socket, also where memory is shared.
  Encoding pull_encoding;
  // Decodes parameters; has the transform of every encoding that they are pulled in.
  TransformRegistry transforms = BuiltinTransforms();
  // The protocol that this side states and needs. Tests have others.
  Revisions revisions = kWorkerRevisions;
};

// Connects to a server. If it cannot be reached, logs that and waits up to `connect_timeout`.
// UNAVAILABLE names address, time and reason. Other errors are those of the credentials.
absl::StatusOr<std::unique_ptr<ServerConnection>> ConnectOverGrpc(
    const GrpcConnectionOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_CONNECTION_H_
