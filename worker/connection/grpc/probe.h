// Measures the path to a server with its Probe service: over the connections, and with the chunks
// and checksums, of a worker's pushes and pulls.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/security/credentials_source.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/grpc/lanes.h"

namespace sluice {

// What a server says of itself.
struct ProbedServer {
  std::string version;         // of Sluice
  uint32_t revision = 0;       // the latest of the protocol that it serves
  bool shares_memory = false;  // it can read the memory of workers of this process's kind
};

// Bytes that went one way, and how long that took.
struct ProbedFlow {
  uint64_t bytes = 0;
  absl::Duration time;

  // Bytes per second; 0 if nothing went.
  double rate() const;
};

// Used by one thread. Errors are the server's, and:
//   UNAVAILABLE    no server can be reached, or the connection broke
//   UNIMPLEMENTED  the server was written before the Probe service
class GrpcProbe {
 public:
  // Connects. `clock` outlives the probe.
  static absl::StatusOr<std::unique_ptr<GrpcProbe>> Connect(const GrpcEndpoint& options,
                                                            const Clock& clock);

  absl::StatusOr<ProbedServer> Ask();

  // The time of day on the server's wall clock when the server started, plus the time for which it
  // has run. Needs no token, and over TLS a certificate with any role.
  absl::StatusOr<absl::Time> AskTime();

  // The times of `most` round trips of an empty message, or of as many as take `longest`, but at
  // least one.
  absl::StatusOr<std::vector<absl::Duration>> RoundTrips(int most, absl::Duration longest);

  // Sends chunks of 1 MiB for about `time` through so many connections, or receives them. What is
  // on its way then is waited for, so a slow path takes longer.
  absl::StatusOr<ProbedFlow> Push(int connections, absl::Duration time);
  absl::StatusOr<ProbedFlow> Pull(int connections, absl::Duration time);

 private:
  // Moves chunks through one connection until `end`, and returns the bytes of payload.
  using Mover = std::function<absl::StatusOr<uint64_t>(grpc::GenericStub&, absl::Time end)>;

  GrpcProbe(GrpcEndpoint options, const Clock& clock);

  absl::StatusOr<ProbedFlow> Move(int connections, absl::Duration time, const Mover& mover);
  absl::StatusOr<uint64_t> PushUntil(grpc::GenericStub& stub, absl::Time end) const;
  absl::StatusOr<uint64_t> PullUntil(grpc::GenericStub& stub, absl::Time end) const;
  absl::Status Explained(const absl::Status& status) const;

  const GrpcEndpoint options_;
  const Clock& clock_;
  GrpcChannel channel_;
  GrpcLanes lanes_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PROBE_H_
