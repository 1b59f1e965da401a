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
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/policy/loss_trend.h"
#include "server/state/incarnation_history.h"
#include "server/state/saved_stripes.h"
#include "server/state/session_record.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// The state of a shard after a step, with that of its server's stripe. Contributions to the next
// step are not part of it.
struct ShardCheckpoint : StripeCheckpoint {
  std::string job_id;
  Step step;
  IncarnationHistory incarnations{Incarnation(1)};
  std::shared_ptr<const Layout> layout;
  OptimizerConfig optimizer;
  Consistency consistency;               // current; the operator may have changed it
  Consistency own_consistency;           // that the server was started with
  absl::optional<double> learning_rate;  // that the operator set, if any
  SharedOptions changed;                 // with which the latest step was made; null: the job's
  LearningRateSchedule schedule;         // only shown: the next server has its own
  std::vector<SessionRecord> workers;    // without listeners
  bool forgot_workers = false;           // a worker that may return has no record any more
  uint32_t launched_workers = 0;         // that the job was launched with; 0: unknown
  // For each earlier launch: the pushes of each worker, by index (Welcome).
  std::vector<std::vector<uint64_t>> earlier_launches;
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
