// Says every now and then that a session lives, so that a long batch is not taken for a death. The
// answers tell a trace how far the server's clock is ahead.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
#define SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/trace/trace.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {

// Beats on threads of gRPC's for as long as it lives, or until the server does not know the session
// any more. A beat that fails is followed by the next all the same.
class Heartbeat {
 public:
  // `stub`, and `trace`, unless it is null, outlive it.
  Heartbeat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration interval,
            const std::string& token, Trace* trace = nullptr);

  // Returns when no beat is under way.
  ~Heartbeat();

  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beat;

  const std::shared_ptr<Beat> beat_;
};

// Some round trips, one after the other, for `trace`: before what is worth tracing begins. Those
// that fail tell it nothing.
void CompareClocks(v1::ParameterServer::Stub& stub, SessionId session, const std::string& token,
                   Trace& trace);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_HEARTBEAT_H_
