// What a shard is told, and what it tells about itself.

#ifndef SLUICE_SERVER_STATE_SHARD_STATUS_H_
#define SLUICE_SERVER_STATE_SHARD_STATUS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/attachment.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/push_counters.h"

namespace sluice {

// What a shard does about gradients that would do harm.
struct Guards {
  // A gradient with NaN or infinity is left out and counted; else it is refused with an error.
  bool skip_not_finite = false;
  // The reduced gradient is scaled down to this norm; absent: never.
  absl::optional<double> clip_norm;
  // A push of a larger norm, over all PARAMETER ranges, is refused; absent: none is.
  absl::optional<double> max_push_norm;

  // OK, or BAD_ARGUMENT saying which field is out of its domain.
  absl::Status Validate() const;
};

struct ShardOptions {
  std::string job_id;
  Incarnation incarnation = Incarnation(1);
  Consistency consistency;
  // Sessions are numbered from here on. Drawn at random, it makes the session of another server's
  // life unknown to this one, whatever zombie still uses it.
  SessionId session_base;
  // Workers the job was launched with. In sync no step completes before that many have joined; in
  // every mode training is not finished before.
  uint32_t expected_workers = 1;
  // How long after the first joined the others are waited for.
  absl::Duration start_timeout = absl::InfiniteDuration();
  // How long a worker whose connection broke, or that says nothing, keeps its place.
  absl::Duration lease = absl::Seconds(10);
  // How often Tick() is called. If it comes later, this process was stopped or had no core, and
  // heard nobody: that time is no part of any lease.
  absl::Duration tick = absl::InfiniteDuration();
  // Workers and observers that may be present at once.
  uint32_t max_sessions = 1024;
  // Elements of a model; a larger one is refused before anything is allocated for it.
  uint64_t max_elements = Layout::kMaxElements;
  // Memory for gradients on their way in; three of them fit always. Beyond it senders are slowed.
  uint64_t max_in_flight_bytes = std::numeric_limits<uint64_t>::max();
  LearningRateSchedule schedule;
  Guards guards;
  SnapshotMemory snapshots = SnapshotMemory::kPrivate;
  AttachmentHook on_attachments;  // null: nobody reads them
};

enum class Phase { kWaitingForWorkers, kTraining, kFinished, kDraining };

struct TrafficCounters {
  // As float32: initial parameters and pushes, whatever became of them; answered pulls.
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
  // The messages that they were on the wire. What lies in shared memory is not.
  uint64_t wire_bytes_received = 0;
  uint64_t wire_bytes_sent = 0;
};

struct StepTimes {
  absl::Duration longest_wait;  // that somebody held a step, or in ssp a worker, up
  absl::optional<absl::Time> initialized;
  absl::optional<absl::Time> last_step;
};

// A worker that others wait for.
struct AwaitedWorker {
  std::string worker;
  absl::Duration since_last_seen;  // since it called, or its connection broke
  uint64_t lag = 0;                // the server's step − that of its latest gradient
  uint64_t bytes_arrived = 0;      // of its push under way
};

// Who are we waiting for?
struct StepState {
  static constexpr size_t kNames = 16;  // at most, in each list

  absl::optional<absl::Time> since;  // the step's first gradient, or the first that waits in ssp
  uint32_t accumulated = 0;          // gradients counted
  uint32_t skipped = 0;              // left out for not being finite
  uint32_t required = 0;             // gradients that complete it
  uint32_t missing = 0;              // workers that others wait for
  std::vector<std::string> contributed;  // names of workers, the first few
  std::vector<AwaitedWorker> awaited;    // the first few of those missing
};

struct ShardStatus {
  std::string job_id;
  Incarnation incarnation;
  Phase phase = Phase::kWaitingForWorkers;
  Step step;
  Consistency consistency;
  OptimizerConfig optimizer;
  LearningRateSchedule schedule;
  // Of the step under way, but for groups of their own; 0 if the workers' optimizers have it.
  double learning_rate = 0;
  uint32_t workers = 0;
  uint32_t observers = 0;
  StepState current;
  uint32_t waiting_pulls = 0;
  PushCounters counters;
  StalenessHistogram staleness;
  TrafficCounters traffic;
  uint32_t tensors = 0;
  uint64_t elements = 0;
  absl::Time created;
  absl::Time now;
  StepTimes times;
  uint64_t lost_steps = 0;  // that an earlier life had made

  // From initialisation to the latest step, divided by the steps; 0 before the first.
  absl::Duration MeanStepTime() const;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_STATUS_H_
