// The options that a shard is created with, and the status that it reports.

#ifndef SLUICE_SERVER_STATE_SHARD_STATUS_H_
#define SLUICE_SERVER_STATE_SHARD_STATUS_H_

#include <cstdint>
#include <limits>
#include <memory>
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
#include "server/policy/divergence.h"
#include "server/policy/staleness_rules.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/push_counters.h"
#include "server/state/training_warning.h"

namespace sluice {

// The rules for gradients that would harm the model.
struct Guards {
  // If true, a gradient with NaN or infinity is skipped and counted. If false, it is refused.
  bool skip_not_finite = false;
  // A reduced gradient of larger norm is scaled down to this norm. Absent: never.
  absl::optional<double> clip_norm;
  // A push of larger norm, over all PARAMETER ranges, is refused. Absent: none is.
  absl::optional<double> max_push_norm;
  DivergenceAction on_divergence = DivergenceAction::kWarn;

  // OK, or BAD_ARGUMENT with the name of the invalid field.
  absl::Status Validate() const;
};

struct ShardOptions {
  std::string job_id;
  Incarnation incarnation = Incarnation(1);
  Consistency consistency;
  // Session numbers start after this one. If it is random, a worker that still uses a session of
  // another incarnation gets UNKNOWN_SESSION.
  SessionId session_base;
  // The number of workers that were launched. In sync and backup no step completes before they have
  // joined, and in every mode training does not end before.
  uint32_t expected_workers = 1;
  // The longest wait for them after the first worker joined.
  absl::Duration start_timeout = absl::InfiniteDuration();
  // The time for which a worker that is lost or silent stays a member.
  absl::Duration lease = absl::Seconds(10);
  // The time between two calls of Tick(). If a call is late, this process was stopped or had no
  // CPU; that time counts against nobody (running_clock.h).
  absl::Duration tick = absl::InfiniteDuration();
  // Whether this incarnation follows another in the same process. Then the job has started, and is
  // over if no worker comes back; else an incarnation to which none comes back is a new launch.
  bool goes_on = false;
  // Warnings that this incarnation begins with.
  std::vector<TrainingWarning> warnings;
  // Workers and observers that may be present at once.
  uint32_t max_sessions = 1024;
  // Elements of a model. A larger model is refused before memory is allocated for it.
  uint64_t max_elements = Layout::kMaxElements;
  // Memory for gradients in flight, and for steps that the journal holds until they are on the
  // disk; at least three vectors in all. Other pushes wait at their header.
  uint64_t max_in_flight_bytes = std::numeric_limits<uint64_t>::max();
  LearningRateSchedule schedule;
  Guards guards;
  SnapshotMemory snapshots = SnapshotMemory::kPrivate;
  AttachmentHook on_attachments;  // may be null
};

enum class Phase { kWaitingForWorkers, kTraining, kFinished, kDraining };

struct TrafficCounters {
  // Bytes of tensors, as if they had traveled as float32. Received are the initial parameters and
  // all pushes, sent the parameters of answered pulls.
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
  // Bytes of the messages that carried them. Tensors in shared memory are not included.
  uint64_t wire_bytes_received = 0;
  uint64_t wire_bytes_sent = 0;
};

struct StepTimes {
  absl::Duration longest_wait;  // that a step, or in ssp a worker, has waited for workers
  absl::optional<absl::Time> initialized;
  absl::optional<absl::Time> last_step;
};

// A worker that others wait for.
struct AwaitedWorker {
  std::string worker;
  absl::Duration since_last_seen;  // since its last call, or its connection broke
  uint64_t lag = 0;                // the server's step − the step of its latest gradient
  uint64_t bytes_arrived = 0;      // of its push in flight
};

// The current step, and the workers that it waits for.
struct StepState {
  static constexpr size_t kNames = 16;  // the most names in each list

  absl::optional<absl::Time> since;      // first gradient; in ssp: the first worker waits
  uint32_t accumulated = 0;              // gradients that count
  uint32_t skipped = 0;                  // left out because they were not finite
  uint32_t required = 0;                 // gradients that complete the step
  uint32_t missing = 0;                  // workers that others wait for
  uint32_t absent = 0;                   // of these, workers that have not joined yet
  std::vector<std::string> contributed;  // names of the first kNames
  std::vector<AwaitedWorker> awaited;    // the first kNames
};

struct ShardStatus {
  std::string job_id;
  Incarnation incarnation;
  Phase phase = Phase::kWaitingForWorkers;
  Step step;
  Consistency consistency;
  StalenessRules staleness_rules;                    // none before the first worker has joined
  std::shared_ptr<const OptimizerConfig> optimizer;  // null before the first worker has joined
  LearningRateSchedule schedule;
  // The current step's, for parameters in no group; 0 if the workers apply their own optimizers.
  double learning_rate = 0;
  double base_learning_rate = 0;  // the same without the schedule
  uint32_t workers = 0;
  uint32_t expected_workers = 0;  // of ShardOptions
  uint32_t observers = 0;
  StepState current;
  uint32_t waiting_pulls = 0;
  PushCounters counters;
  StalenessHistogram staleness;
  TrafficCounters traffic;
  uint32_t tensors = 0;
  uint64_t elements = 0;
  absl::Time created;
  absl::Duration uptime;  // since then
  // The time of a clock that stands still while this process does not run. `times` and all times of
  // sessions are by the same clock.
  absl::Time now;
  StepTimes times;
  uint64_t lost_steps = 0;  // of earlier incarnations, which recovery could not restore
  std::vector<TrainingWarning> warnings;  // at most one of each kind, in the order they came
  absl::optional<Step> suspect_since;     // see ShardCheckpoint
  bool diverged = false;                  // the server ended the job, because training diverged
  bool goes_back = false;                 // training diverges, and the server shall go back

  // The time from initialisation to the latest step, divided by the number of steps. 0 before the
  // first step.
  absl::Duration MeanStepTime() const;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_STATUS_H_
