// What the parts of a Shard share: the Coordinator, which decides; the group of servers, which
// carries out the decisions; and the mutex of both. Commands are sent with the mutex, so that all
// servers have them in one order.

#ifndef SLUICE_SERVER_SHARD_JOB_STATE_H_
#define SLUICE_SERVER_SHARD_JOB_STATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/replica/order_reports.h"
#include "server/replica/replica_link.h"
#include "server/shard/checkpoint_requests.h"
#include "server/shard/coordinator.h"
#include "server/shard/job_parts.h"
#include "server/shard/replica_checkpoints.h"
#include "server/shard/replica_group.h"
#include "server/shard/tensor_summaries.h"
#include "server/state/completions.h"
#include "server/state/shard_options.h"

namespace sluice {

// How far a recovery is during which other threads call the shard.
enum class Recovery { kRepeats, kSaves, kDone };

struct JobState {
  // The arguments are those of JobParts.
  JobState(const ShardOptions& options, const Clock& clock_, JobListener owner, PullRelease release)
      : clock(clock_),
        others_checkpoints(others),
        parts(options, clock_, std::move(owner), std::move(release)),
        coordinator(parts, clock_) {}

  // Of its worker or observer; empty if the session is unknown.
  std::string NameOf(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // UNAVAILABLE if a recovery is not so far.
  absl::Status CheckRecovery(Recovery at_least) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Requests a checkpoint for the callback of SetPeriodic(), if it is set and the other servers
  // have written the checkpoint before. Call it when there are parameters.
  void RequestPeriodicCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Answers `await_end` if the end of training is saved, or cannot be, or takes too long.
  void AnswerIfEndIsSaved(Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // ---- The other servers

  // Waits until `over`, or until StopOthers(), at most so long. Returns whether either came.
  bool AwaitOthers(absl::FunctionRef<bool()> over,
                   absl::Duration longest = absl::InfiniteDuration())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Waits for no other server from now on. Ends what waits for them with `why`, an error.
  void StopOthers(const absl::Status& why, Completions* completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Asks them for their parts of a tensor of step `step`, the latest. Returns the number by which
  // server 0 reports its own. `done` is called once. An error, and it is never called, if too many
  // calls wait, if a server has not loaded its stripe yet, and after StopOthers().
  absl::StatusOr<uint64_t> Summarize(const TensorQuery& query, const StripedTensor& tensor,
                                     Step step, SummaryCallback done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void DescribeOthers(ShardStatus* status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const Clock& clock;
  // See Shard::Lead(). Set before several threads use the shard.
  std::vector<ReplicaLink*> links;  // to the other servers
  using Pump = std::function<void(absl::FunctionRef<bool()> until)>;
  Pump pump;
  mutable absl::Mutex mu;
  ReplicaGroup others ABSL_GUARDED_BY(mu);
  ReplicaCheckpoints others_checkpoints ABSL_GUARDED_BY(mu);
  OrderReports carried ABSL_GUARDED_BY(mu);  // of all servers
  TensorSummaries summaries ABSL_GUARDED_BY(mu);
  JobParts parts ABSL_GUARDED_BY(mu);
  Coordinator coordinator ABSL_GUARDED_BY(mu);      // of these
  uint64_t bytes_received ABSL_GUARDED_BY(mu) = 0;  // of all pushes, as float32
  Recovery recovery ABSL_GUARDED_BY(mu) = Recovery::kDone;
  CheckpointRequests checkpoints ABSL_GUARDED_BY(mu);
  // Who waits for the end to be saved, and since when the first does.
  std::vector<std::function<void(const absl::Status&)>> await_end ABSL_GUARDED_BY(mu);
  absl::Time await_end_since ABSL_GUARDED_BY(mu);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_JOB_STATE_H_
