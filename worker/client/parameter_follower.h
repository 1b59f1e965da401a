// Follows the steps of a job without taking part in it: an observer's side of the protocol.
//
// No step waits for an observer, and it counts in no quorum. The server stays up until it has left,
// so that whoever follows to the end sees the last step.

#ifndef SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_
#define SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// One step of a job. A step that a server had made when it was killed may be lost; then one of a
// later incarnation has its number.
struct FollowedStep {
  Step step;
  Incarnation incarnation;
};

// Joins again by itself when the connection broke, the session ended, or the server came back. To
// be used by one thread.
class ParameterFollower {
 public:
  // `request` is an observer's. `patience` is for a job whose first worker has not joined yet;
  // `connection` has its own for a server that is not there. `clock` outlives this.
  ParameterFollower(std::unique_ptr<ServerConnection> connection, JoinRequest request,
                    absl::Duration patience, const Clock& clock = RealClock());

  // Leaves.
  ~ParameterFollower();

  ParameterFollower(const ParameterFollower&) = delete;
  ParameterFollower& operator=(const ParameterFollower&) = delete;

  // Waits until the job is at least `every` steps, at least 1, further than the last time, or has
  // ended, and writes the parameters of its newest step, all of that one, to `parameters`, which
  // have the layout's size. The first time it does not wait for more than the first parameters.
  // Absent: the job has ended, and its last step was given before; or the server was drained before
  // it could be asked. After an error `parameters` may be a mixture.
  //   DEADLINE_EXCEEDED  the server is gone and did not come back, or no worker came
  //   others             those of proto/sluice/v1/parameter_server.proto
  absl::StatusOr<absl::optional<FollowedStep>> Next(uint64_t every, absl::Span<float> parameters);

 private:
  absl::Status Join();
  absl::Status TryJoin();
  absl::Status AwaitServer();
  bool WasToldOfTheEnd();
  absl::StatusOr<PullHeader> Pull(Step min_step, absl::Span<float> parameters);

  const std::unique_ptr<ServerConnection> connection_;
  JoinRequest request_;
  const absl::Duration patience_;
  const Clock& clock_;
  absl::optional<Welcome> welcome_;  // of the latest session, unless that is lost
  absl::optional<FollowedStep> given_;
  bool ended_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_
