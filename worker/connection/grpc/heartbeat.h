// Sends heartbeats for a session, so that the server does not evict a worker whose batch takes
// long. Each answer also tells a trace the server's clock.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
#define SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_

#include <grpcpp/client_context.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/stop_flag.h"
#include "common/trace/trace.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/connection/grpc/call.h"

namespace sluice {

// The time from the start of one heartbeat to the start of the next: a third of the lease, but at
// least 20 ms and at most 5 s.
absl::Duration HeartbeatInterval(absl::Duration lease);

// The rest of the interval after a heartbeat that took so long; zero if none is left. With three
// heartbeats in a lease, the server still hears the second in time if the first is lost.
absl::Duration PauseAfterHeartbeat(absl::Duration took, absl::Duration interval);

// Sends them until it is destroyed, or until the server does not know the session any more. Each
// must be answered within an interval. After one that fails, the next comes at its usual time.
//
// It has a thread, which polls only while a heartbeat is on its way. A call with a callback would
// need less code. But then threads of gRPC poll for as long as the process lives, and take what
// comes for the thread that trains, which waits and polls itself: each message would wake two
// threads.
class Heartbeat {
 public:
  // `stub`, and `trace`, unless it is null, outlive it.
  Heartbeat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration lease,
            const CallMetadata& metadata, Trace* trace = nullptr);

  // Waits until no heartbeat is being sent.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Run();
  bool Beat() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether the call may be made.
  bool BeginCall(grpc::ClientContext& context) ABSL_LOCKS_EXCLUDED(mu_);
  void EndCall() ABSL_LOCKS_EXCLUDED(mu_);

  v1::ParameterServer::Stub& stub_;
  const absl::Duration interval_;
  const CallMetadata metadata_;
  Trace* const trace_;
  v1::HeartbeatRequest request_;
  StopFlag stop_;
  absl::Mutex mu_;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mu_) = nullptr;  // null between two calls
  std::thread thread_;
};

// Compares clocks for `trace` by some round trips, before the first span. Stops at the first that
// fails.
void CompareClocks(v1::ParameterServer::Stub& stub, SessionId session, const CallMetadata& metadata,
                   Trace& trace);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
