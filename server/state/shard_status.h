// The status that a shard reports: what GetServerState and the closing table show.

#ifndef SLUICE_SERVER_STATE_SHARD_STATUS_H_
#define SLUICE_SERVER_STATE_SHARD_STATUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/results.h"
#include "common/tensor/layout.h"
#include "server/policy/staleness_rules.h"
#include "server/state/push_counters.h"
#include "server/state/server_status.h"
#include "server/state/training_warning.h"
#include "server/state/wire_bytes.h"
#include "server/state/worker_counts.h"

namespace sluice {

enum class Phase { kWaitingForWorkers, kTraining, kFinished, kDraining };

struct TrafficCounters {
  // Bytes of tensors, as if they had traveled as float32. Received are the initial parameters and
  // all pushes, sent the parameters of answered pulls.
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
  // Bytes of the messages that carried them. Tensors in shared memory are not included.
  uint64_t wire_bytes_received = 0;
  uint64_t wire_bytes_sent = 0;
  // The same for each encoding, of the messages with parts of vectors alone.
  BytesByTransform received_by_transform;
  BytesByTransform sent_by_transform;
};

// Vectors of gradients in memory, as InFlightLimit counts them.
struct InFlightStatus {
  uint64_t bytes = 0;
  uint64_t limit = 0;    // bytes; 0 before the first worker has joined
  uint64_t waiting = 0;  // pushes that wait at their header
};

// What was reported while the job trains.
struct MeasurementStatus {
  uint64_t count = 0;  // of reports
  StepMeasurement latest;
};

struct StepTimes {
  absl::Duration longest_wait;  // that a step, or in ssp a worker, has waited for workers
  absl::optional<absl::Time> initialized;
  absl::optional<absl::Time> first_step;  // of this process
  absl::optional<absl::Time> last_step;
  uint64_t steps = 0;  // of this process
};

// A worker that others wait for.
struct AwaitedWorker {
  std::string worker;
  absl::Duration since_last_seen;  // since its last call, or its connection broke
  uint64_t lag = 0;                // the server's step − the step of its latest gradient
  uint64_t bytes_arrived = 0;      // of its push in flight
};

struct GoneWorkers {
  uint32_t left = 0;  // in good order, from any incarnation
  uint32_t away = 0;  // of an earlier incarnation, and not back
};

// A worker whose next gradient is late, though nobody waits for it.
struct StalledWorker {
  std::string worker;
  absl::Duration since_last_push;
  absl::Duration usual;  // between its latest pushes
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
  std::vector<StalledWorker> stalled;    // the first kNames; see SessionRecord::HasStalled()
  uint32_t stalled_workers = 0;          // all of them
};

// Another server that the current step waits for.
struct AwaitedHolder {
  uint32_t server = 0;  // its index
  absl::Time since;     // when the order was given that it has not carried out
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
  SharedOptions changed;  // of the latest step, in place of the optimizer's
  // The current step's, for parameters in no group; 0 if the workers apply their own optimizers.
  double learning_rate = 0;
  double base_learning_rate = 0;  // the same without the schedule
  uint32_t workers = 0;
  uint32_t expected_workers = 0;  // of ShardOptions
  WorkerCounts worker_counts;
  GoneWorkers gone;
  uint32_t most_workers = 0;  // connected at once, without those that have left since
  uint32_t observers = 0;
  bool end_is_saved = false;     // training has ended, and a checkpoint of that is on the disk
  bool end_is_complete = false;  // and no observer was there, so that nothing is left to be saved
  bool ended_before = false;     // training had ended in an earlier incarnation, and nobody goes on
  StepState current;
  uint32_t waiting_pulls = 0;
  PushCounters counters;
  StalenessHistogram staleness;
  TrafficCounters traffic;
  InFlightStatus in_flight;
  MeasurementStatus measured;
  uint32_t servers = 1;
  absl::optional<AwaitedHolder> awaited_holder;
  std::vector<ServerStatus> each_server;  // in the order of their indices
  uint64_t samples = 0;          // of the gradients of the steps that this process has made
  absl::optional<double> loss;   // mean of the latest steps with a finite one
  bool journal_stopped = false;  // pushes are refused, because it cannot be written
  uint32_t tensors = 0;
  uint64_t elements = 0;
  std::shared_ptr<const Layout> layout;  // null before the first worker has joined
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

  // The mean time between the steps of this process; of its first one, since initialisation. 0
  // before that.
  absl::Duration MeanStepTime() const;
  // What all servers have of each table, in the order of the layout.
  std::vector<TableStatus> table_totals() const;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_STATUS_H_
