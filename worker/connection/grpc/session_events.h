// The events that a server sends on a session's stream.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
#define SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_

#include <grpcpp/generic/generic_stub.h>

#include "absl/status/statusor.h"
#include "sluice/v1/parameter_server.pb.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {

// One call of Join, or of JoinInParts if the request is larger than a message. One thread calls its
// methods. Events are read when they are asked for: a read that is always pending would start
// threads of gRPC, which poll the connection that carries the parameters, and a pull of 102 MB then
// costs the worker 1.4 times the CPU time.
class SessionEvents {
 public:
  // Starts the call, which has no deadline: it lasts as long as the session. Blocks while the
  // request is sent. `stub` outlives this.
  SessionEvents(grpc::GenericStub& stub, v1::JoinRequest request, const CallMetadata& metadata);

  // The destructor ends the call, and with it the session.
  SessionEvents(const SessionEvents&) = delete;
  SessionEvents& operator=(const SessionEvents&) = delete;

  // Blocks until Next() would not, for `longest` at most. Returns whether it would not.
  bool Await(absl::Duration longest) { return ended_ || stream_.AwaitAnswer(longest); }

  // Blocks until there is an event. Once the stream has ended and all its events were returned, the
  // error with which it ended; UNAVAILABLE if the server ended it without one.
  absl::StatusOr<v1::JoinEvent> Next();

 private:
  GrpcStream stream_;
  bool ended_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
