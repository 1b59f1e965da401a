// What a shard is told, and what it tells about itself.

#ifndef SLUICE_SERVER_SHARD_STATE_H_
#define SLUICE_SERVER_SHARD_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/consistency.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/sgd_options.h"
#include "server/push_books.h"

namespace sluice {

struct ShardOptions {
  std::string job_id;
  Incarnation incarnation = Incarnation(1);
  Consistency consistency;
  // Workers the job was launched with. In sync no step completes before that many have joined; in
  // every mode training is not finished before.
  uint32_t expected_workers = 1;
  // How long after the first joined the others are waited for.
  absl::Duration start_timeout = absl::InfiniteDuration();
  // How long a worker whose connection broke keeps its place.
  absl::Duration lease = absl::Seconds(10);
  // Workers and observers that may be present at once.
  uint32_t max_sessions = 1024;
  // Elements of a model; a larger one is refused before anything is allocated for it.
  uint64_t max_elements = Layout::kMaxElements;
};

enum class Phase { kWaitingForWorkers, kTraining, kFinished, kDraining };

struct TrafficCounters {
  uint64_t bytes_received = 0;  // payload of initial parameters and pushes, whatever became of them
  uint64_t bytes_sent = 0;      // payload of answered pulls
};

struct StepTimes {
  absl::optional<absl::Time> initialized;
  absl::optional<absl::Time> last_step;
};

struct ShardState {
  std::string job_id;
  Incarnation incarnation;
  Phase phase = Phase::kWaitingForWorkers;
  Step step;
  Consistency consistency;
  SgdOptions optimizer;
  uint32_t workers = 0;
  uint32_t observers = 0;
  uint32_t accumulated = 0;
  uint32_t required = 0;
  std::vector<std::string> waiting_for;  // members without a contribution to this step
  uint32_t waiting_pulls = 0;
  PushBooks books;
  TrafficCounters traffic;
  uint32_t tensors = 0;
  uint64_t elements = 0;
  absl::Time created;
  absl::Time now;
  StepTimes times;

  // From initialisation to the latest step, divided by the steps; 0 before the first.
  absl::Duration MeanStepTime() const;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_STATE_H_
