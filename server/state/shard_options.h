// The options that a shard is created with. Server makes them from the command line.

#ifndef SLUICE_SERVER_STATE_SHARD_OPTIONS_H_
#define SLUICE_SERVER_STATE_SHARD_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/attachment.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/program_optimizer.h"
#include "common/tensor/layout.h"
#include "server/policy/divergence.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/server_span.h"
#include "server/state/table_memory.h"
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

// How a server was started. If its checkpoint says that training had ended, this decides whether
// the job is over. It is over only until a worker joins.
enum class Launched {
  kByHand,  // by a person: over if the checkpoint names observers, which may still come
  kAgain,   // in place of a server of the same launch, for example of a process that died: over
  kAnew,    // by a new launch, whose workers train on: not over
};

struct ShardOptions {
  std::string job_id;
  Incarnation incarnation = Incarnation(1);
  Consistency consistency;
  // Session numbers start after this one. If it is random, a worker that still uses a session of
  // another incarnation gets UNKNOWN_SESSION.
  SessionId session_base;
  // The number of workers that were launched. In sync and backup no step completes before they are
  // all there, and in every mode training does not end before.
  uint32_t expected_workers = 1;
  // The longest wait for them after the first worker joined.
  absl::Duration start_timeout = absl::InfiniteDuration();
  // The time for which a worker that is lost or silent stays a member.
  absl::Duration lease = absl::Seconds(10);
  // The time between two calls of Tick(). If a call is late, this process was stopped or had no
  // CPU; that time counts against nobody (running_clock.h).
  absl::Duration tick = absl::InfiniteDuration();
  // Whether this incarnation follows another in the same process. Then the job is over if no worker
  // comes back; else an incarnation to which none comes back is a new launch (Roster::Restore()).
  bool goes_on = false;
  Launched launched = Launched::kByHand;
  // Warnings that this incarnation begins with.
  std::vector<TrainingWarning> warnings;
  // Workers and observers that may be present at once.
  uint32_t max_sessions = 1024;
  // Elements of a model. A larger model is refused before memory is allocated for it.
  uint64_t max_elements = Layout::kMaxElements;
  // Memory for gradients in flight, and for steps that the journal holds until they are on the
  // disk; at least three vectors in all. Other pushes wait at their header.
  uint64_t max_in_flight_bytes = std::numeric_limits<uint64_t>::max();
  // Whether fewer gradients may be in flight than that memory holds, where fewer are ample: 64, or
  // as many as 128 MB hold. Not where a step that waits too long proceeds in the order of ranks,
  // because it is then made of the gradients that have arrived.
  bool ample_in_flight = false;
  LearningRateSchedule schedule;
  Guards guards;
  SnapshotMemory snapshots = SnapshotMemory::kPrivate;
  // Bytes of rows that a push may have (PushHeader::row_bytes). A model with tables has room in
  // flight for the vector and as many bytes, for each push.
  uint64_t most_row_bytes = uint64_t{64} << 20;
  TableMemory table_memory;       // on this server
  AttachmentHook on_attachments;  // may be null
  // Makes the optimizer of a model whose workers ask for one of the program's; null: they are
  // refused. Only where one server has the whole vector.
  ProgramOptimizerFactory program_optimizer;
  SpanListener on_span;  // may be null; hears how long the parts of the work take
};

// Makes the optimizer, if it is one of the program's; else it is null. BAD_OPTIMIZER if the options
// have no factory, or its error. It may take long.
absl::StatusOr<std::unique_ptr<ProgramOptimizer>> MakeProgramOptimizer(
    const ShardOptions& options, const Layout& layout, const OptimizerConfig& optimizer);

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SHARD_OPTIONS_H_
