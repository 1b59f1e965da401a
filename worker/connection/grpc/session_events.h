// The events that a server sends on a session's Join stream.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
#define SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {

// One call of Join. One thread calls its methods. Events are read when they are asked for: a read
// that is always pending would let gRPC's callback threads poll the connection that carries the
// parameters, and a pull of 102 MB then costs the worker 1.4 times the CPU time.
class SessionEvents {
 public:
  // Starts the call, which has no deadline: it lasts as long as the session. `stub` outlives this.
  SessionEvents(v1::ParameterServer::Stub& stub, const v1::JoinRequest& request,
                const std::string& token);

  // Ends the call, and with it the session.
  ~SessionEvents();

  SessionEvents(const SessionEvents&) = delete;
  SessionEvents& operator=(const SessionEvents&) = delete;

  // Blocks until there is an event. Once the stream has ended and all its events were returned, the
  // error with which it ended; UNAVAILABLE if the server ended it without one.
  absl::StatusOr<v1::JoinEvent> Next();

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::JoinEvent>> reader_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
