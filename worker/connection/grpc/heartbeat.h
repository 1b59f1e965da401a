// Sends heartbeats for a session, so that the server does not evict a worker whose batch takes
// long. Each answer also tells a trace the server's clock.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
#define SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/trace/trace.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {

// The time between two heartbeats: a third of the lease, but at least 20 ms.
absl::Duration HeartbeatInterval(absl::Duration lease);

// Sends them on gRPC's threads until it is destroyed, or until the server does not know the session
// any more. A heartbeat that fails is not repeated; the next one follows after the interval.
class Heartbeat {
 public:
  // `stub`, and `trace`, unless it is null, outlive it.
  Heartbeat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration lease,
            const std::string& token, Trace* trace = nullptr);

  // Waits until no heartbeat is being sent.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beat;

  const std::shared_ptr<Beat> beat_;
};

// Compares clocks for `trace` by some round trips, before the first span. Stops at the first that
// fails.
void CompareClocks(v1::ParameterServer::Stub& stub, SessionId session, const std::string& token,
                   Trace& trace);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
