// A checkpoint of a shard: everything that a new server process needs to continue training at that
// step. Shard makes it, and server/durable writes and reads it.

#ifndef SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_
#define SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/saved_rows.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/policy/loss_trend.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/incarnation_history.h"
#include "server/state/saved_stripes.h"
#include "server/state/session_record.h"

namespace sluice {

// The values of one OptimizerSlot.
struct SlotCheckpoint {
  std::string name;
  FloatBuffer values;
};

// The state of a shard after a step. Contributions to the next step are not part of it.
struct ShardCheckpoint {
  std::string job_id;
  Step step;
  IncarnationHistory incarnations{Incarnation(1)};
  std::shared_ptr<const Layout> layout;
  OptimizerConfig optimizer;
  Consistency consistency;               // current; the operator may have changed it
  Consistency own_consistency;           // that the server was started with
  absl::optional<double> learning_rate;  // that the operator set, if any
  LearningRateSchedule schedule;         // only shown: the next server has its own
  std::vector<SessionRecord> workers;    // without listeners
  bool forgot_workers = false;           // a worker that may return has no record any more
  uint32_t launched_workers = 0;         // that the job was launched with; 0: unknown
  // For each earlier launch: the pushes of each worker, by index (Welcome).
  std::vector<std::vector<uint64_t>> earlier_launches;
  // Of this server's stripe, if there are several servers.
  std::shared_ptr<const Snapshot> parameters;
  std::vector<SlotCheckpoint> slots;
  uint64_t optimizer_steps = 0;
  // The rows of this server's buckets, if the model has tables. A checkpoint that is to be saved
  // has them in parameters->rows, and one that was loaded here.
  std::shared_ptr<const SavedRows> rows;
  std::vector<RowSlots> row_slots;     // of each table
  uint64_t row_steps = 0;              // RowTables::optimizer_steps()
  std::vector<RowFile> row_files;      // that one server has saved; the oldest first
  bool ended = false;                  // every worker had gone, or the server was draining
  bool finished = false;               // every worker had gone, and one in good order
  std::vector<std::string> observers;  // that were there when training was finished
  absl::optional<LossMemory> losses;   // absent: too few were reported
  // Since this step training diverges or may diverge (DivergenceDetector). Absent: it seems fine.
  absl::optional<Step> suspect_since;
  // The XXH3-64 of each stripe's file, if several servers have saved it. Empty: one file has all
  // values.
  std::vector<uint64_t> stripes;
  // What the other servers save of it; null if there is one server.
  std::shared_ptr<SavedStripes> elsewhere;
  absl::Duration pause;  // how long training waited while Shard made it; only logged
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_CHECKPOINT_H_
