// Asks a server what it is and whether it lets this caller train, without a session.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/connection/grpc/channel.h"

namespace sluice {

// What a server says of itself.
struct ProbedServer {
  std::string version;    // of Sluice; empty: it was written before servers told it
  uint32_t revision = 0;  // the latest of the protocol that it serves
  absl::Time time;        // on the wall clock of its machine, as its start and the time since tell
};

// Used by one thread. Errors are the server's, and UNAVAILABLE if it cannot be reached.
class GrpcProbe {
 public:
  static absl::StatusOr<std::unique_ptr<GrpcProbe>> Connect(const GrpcEndpoint& options);

  // Needs no token, and over TLS a certificate with any role. NOT_FIRST_SERVER if another server of
  // the job knows.
  absl::StatusOr<ProbedServer> Ask();

  // Whether the server takes the token and the certificate of a worker: BAD_TOKEN or WRONG_ROLE if
  // not. Changes nothing of the job.
  absl::Status TryAccess();

 private:
  explicit GrpcProbe(GrpcEndpoint options);

  const GrpcEndpoint options_;
  GrpcChannel channel_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_
