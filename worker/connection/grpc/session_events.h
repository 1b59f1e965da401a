// The events that a server sends on a session's Join stream, received on gRPC's threads as they
// come.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
#define SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {

// One call of Join. Its public methods are called by one thread; gRPC's threads run the reactor's.
// Events are few, so none is dropped while nobody asks for them.
class SessionEvents final : private grpc::ClientReadReactor<v1::JoinEvent> {
 public:
  // Starts the call, which has no deadline: it lasts as long as the session. `stub` outlives this.
  SessionEvents(v1::ParameterServer::Stub& stub, const v1::JoinRequest& request,
                const std::string& token);

  // Ends the call, and with it the session.
  ~SessionEvents() override;

  SessionEvents(const SessionEvents&) = delete;
  SessionEvents& operator=(const SessionEvents&) = delete;

  // Blocks until there is an event. Once the stream has ended and all its events were returned, the
  // error with which it ended; UNAVAILABLE if the server ended it without one.
  absl::StatusOr<v1::JoinEvent> Next() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when another event arrives, when the stream has ended, or after `longest`. The end
  // makes one call return early; later calls wait for `longest`, so that a caller in a loop does
  // not spin.
  void AwaitChange(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return done_ || !events_.empty(); }
  bool HasChanged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return received_ >= awaited_ || (done_ && !end_noticed_);
  }
  bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return done_; }

  grpc::ClientContext context_;
  const v1::JoinRequest request_;
  v1::JoinEvent read_;  // gRPC's, until OnReadDone()

  absl::Mutex mu_;
  std::deque<v1::JoinEvent> events_ ABSL_GUARDED_BY(mu_);
  uint64_t received_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t awaited_ ABSL_GUARDED_BY(mu_) = 0;      // AwaitChange() waits for this many events
  bool end_noticed_ ABSL_GUARDED_BY(mu_) = false;  // by a call of AwaitChange()
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mu_);  // once done_
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_SESSION_EVENTS_H_
