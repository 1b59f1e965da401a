// What of a shard outlives its server: all that another needs to go on where it ended.

#ifndef SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_
#define SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/incarnation_history.h"
#include "server/state/session_record.h"

namespace sluice {

// One of the optimizer's, as OptimizerSlot.
struct SlotCheckpoint {
  std::string name;
  FloatBuffer values;
};

// A shard at one step: what belongs to the step under way is not in it.
struct ShardCheckpoint {
  std::string job_id;
  Step step;
  IncarnationHistory incarnations{Incarnation(1)};
  std::shared_ptr<const Layout> layout;
  OptimizerConfig optimizer;
  // The terms that hold, those that the server was started with, and what the operator has put in
  // the place of the optimizer's learning rate.
  Consistency consistency;
  Consistency own_consistency;
  absl::optional<double> learning_rate;
  LearningRateSchedule schedule;  // for people: the next server has its own
  // Their listeners are not part of it.
  std::vector<SessionRecord> workers;
  // Whether a worker of this history is known no more.
  bool forgot_workers = false;
  std::shared_ptr<const Snapshot> parameters;
  std::vector<SlotCheckpoint> slots;
  uint64_t optimizer_steps = 0;
  bool ended = false;    // every worker had left, or the server was going down
  absl::Duration pause;  // for which training waited until it was taken
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_
