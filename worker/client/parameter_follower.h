// Follows the steps of a job without taking part in it: an observer's side of the protocol.
//
// sluice_evaluate uses it. No step waits for an observer, and it counts in no quorum. The server
// stays up until its observers have left, so an observer sees the last step.

#ifndef SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_
#define SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/constant_memory.h"
#include "worker/connection/row_gradient.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// One step of a job. If a killed server has lost a step, a step of a later incarnation has the same
// number.
struct FollowedStep {
  Step step;
  Incarnation incarnation;
};

// A server answers 8 pulls of an observer at once: those of the rows, and that of the parameters.
inline constexpr size_t kMostFollowedIds = 7 * kMaxPulledIds;

// Owns its connection. It is used by one thread. When the connection breaks, the session ends or
// the server comes back, it joins again.
class ParameterFollower {
 public:
  // `request` is an observer's. `patience` is how long to wait for a job's first worker;
  // `connection` decides how long to wait for a server. `clock` outlives this.
  ParameterFollower(std::unique_ptr<ServerConnection> connection, JoinRequest request,
                    absl::Duration patience, const Clock& clock = RealClock());

  // Leaves the job.
  ~ParameterFollower();

  ParameterFollower(const ParameterFollower&) = delete;
  ParameterFollower& operator=(const ParameterFollower&) = delete;

  // The memory of each of the layout's constants, in their order: Next() writes the job's there
  // before it returns the first step, and again if the server comes back with others. BAD_ARGUMENT
  // if they do not fit the layout. They must stay valid as long as this.
  absl::Status KeepConstants(ConstantMemory memory);
  // How often they were written there.
  uint64_t constants_pulled() const { return constants_pulled_; }

  // Waits until the job has made `every` (at least 1) more steps than at the last call, or has
  // ended. Then writes the parameters of its newest step to `parameters`, which have the layout's
  // size and never hold a mixture of two steps, except if the call returns an error or nothing. The
  // first call waits for the job's first parameters only.
  //
  // Returns nothing if the job has ended and its last step was returned before, or if the server
  // was drained before it could be asked.
  //   DEADLINE_EXCEEDED  the server is gone and did not come back, or no worker joined
  //   others             those of proto/sluice/v1/parameter_server.proto
  absl::StatusOr<absl::optional<FollowedStep>> Next(uint64_t every, absl::Span<float> parameters);

  // Does the same, and writes rows of tables of the same step to `to`, one after the other: of
  // tables in ascending order, and their ids. `to` has their size. BAD_ARGUMENT for more than
  // kMostFollowedIds of them.
  absl::StatusOr<absl::optional<FollowedStep>> Next(uint64_t every, absl::Span<float> parameters,
                                                    const std::vector<RowIds>& rows,
                                                    absl::Span<float> to);

  // Tells the server what was measured of the step that Next() gave last. Does nothing if no
  // session is open. Errors are those of Heartbeat; the next Next() does what has to be done.
  absl::Status Report(const Results& results);

 private:
  // Where a step is written to.
  struct Target {
    absl::Span<float> parameters;
    std::vector<std::vector<RowIds>> parts;  // of the rows, each for one call
    absl::Span<float> rows;
  };

  absl::StatusOr<absl::optional<FollowedStep>> Next(uint64_t every, const Target& to);
  absl::Status CheckRows(const std::vector<RowIds>& rows, absl::Span<const float> to) const;
  absl::Status Join();
  absl::Status TryJoin();
  absl::Status TakeConstants();
  absl::Status AwaitServer();
  absl::StatusOr<PullHeader> Pull(Step min_step, const Target& to);
  absl::StatusOr<PullHeader> PullTogether(Step min_step, const Target& to);
  absl::StatusOr<PullHeader> PullOnce(Step min_step, const Target& to, Step* newest);

  const std::unique_ptr<ServerConnection> connection_;
  JoinRequest request_;
  const absl::Duration patience_;
  const Clock& clock_;
  absl::optional<Welcome> welcome_;  // of the open session; absent if there is none
  ConstantMemory constants_;
  absl::optional<uint64_t> constants_taken_;  // the checksum of those that were pulled
  SessionId constants_session_;               // in which they were
  uint64_t constants_pulled_ = 0;
  absl::optional<FollowedStep> given_;
  bool ended_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PARAMETER_FOLLOWER_H_
