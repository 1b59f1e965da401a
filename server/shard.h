// The parameters and the rules by which they change: the heart of the server.
//
// A shard owns a vector of parameters, knows who trains it, and turns gradients into steps. It is a
// plain object: no gRPC, no threads of its own, no clock but the one it is given. Whoever calls it
// lends its thread: the call that brings a step's last gradient also applies the step.
//
// The life of a push: BeginPush judges its header before any payload is read; the caller adds
// chunks to the PendingPush; FinishPush queues it. Queued pushes are then taken one at a time:
// judged again, since the step may have moved; added to the accumulator; and, if that completes the
// step, the optimizer writes the next snapshot, which is published. Judging and publishing happen
// under the mutex; arithmetic and callbacks never do: the thread that set advancing_ alone touches
// the accumulator and the optimizer.
//
// All methods may be called from any thread. Errors are those of
// proto/sluice/v1/parameter_server.proto.

#ifndef SLUICE_SERVER_SHARD_H_
#define SLUICE_SERVER_SHARD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/exchange.h"
#include "server/accumulator.h"
#include "server/completions.h"
#include "server/gate.h"
#include "server/pending_push.h"
#include "server/pull_queue.h"
#include "server/roster.h"
#include "server/sgd_optimizer.h"
#include "server/shard_state.h"
#include "server/snapshot_store.h"
#include "server/staleness_policy.h"

namespace sluice {

class Shard {
 public:
  // `options` are valid; `clock` outlives the shard. `owner` is told all events, kDeserted too.
  Shard(const ShardOptions& options, const Clock& clock, JobListener owner = nullptr);

  // Opens a session; `listener` is told what happens to the job until the session ends.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener);

  // The session's stream broke: its lease begins to run.
  void ConnectionLost(SessionId session);

  // Ends a session in good order. Returns the server's step.
  absl::StatusOr<Step> Leave(SessionId session, const Results& results);

  // First offer wins. FinishInitialize takes what BeginInitialize staged.
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session);
  absl::StatusOr<InitializeOutcome> FinishInitialize(std::unique_ptr<StagedVector> parameters);

  // Takes what the wire made of the header, so that a malformed one is in the books too. A push
  // that was begun ends with one of the other two.
  absl::StatusOr<PushStart> BeginPush(const absl::StatusOr<PushHeader>& header);
  void FinishPush(std::unique_ptr<PendingPush> push, PushCallback done);
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why);

  // Answers when the shard has reached `request.min_step`, perhaps before it returns. The id is for
  // CancelPull, which returns true iff `done` will then not be called; it is 0 if the pull did not
  // wait.
  PullId Pull(const PullRequest& request, PullCallback done);
  bool CancelPull(PullId id);

  // Ends leases and waits that are over. To be called every now and then.
  void Tick();

  // Takes no more pushes and joins; waiting pulls end with DRAINING.
  void Drain();

  ShardState Describe() const;
  std::vector<SessionRecord> Sessions() const;       // in order of name
  Results results() const;                           // what leaving workers reported
  std::shared_ptr<const Layout> layout() const;      // null before the first worker joined
  std::shared_ptr<const Snapshot> snapshot() const;  // null before initialisation

 private:
  struct Arrival {
    std::unique_ptr<PendingPush> push;
    PushCallback done;
  };

  void UpdateRoster() ABSL_LOCKS_EXCLUDED(mu_);
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  bool AdvanceOnce() ABSL_LOCKS_EXCLUDED(mu_);
  std::unique_ptr<Arrival> TakeAdmissible(Completions* completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Accumulate(std::unique_ptr<Arrival> arrival, Completions* completions)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Apply(std::unique_ptr<Arrival> completing, Completions* completions)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CountPush(std::unique_ptr<Arrival> arrival, Disposition disposition, Step judged_at,
                 Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool initialized() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StepProgress Progress() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Phase phase() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ShardOptions options_;
  const Clock& clock_;
  const StalenessPolicy policy_;
  const absl::Time created_;

  mutable absl::Mutex mu_;
  Roster roster_ ABSL_GUARDED_BY(mu_);
  Gate gate_ ABSL_GUARDED_BY(mu_);
  PullQueue pulls_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<SnapshotStore> snapshots_
      ABSL_GUARDED_BY(mu_);  // made when the first worker joins
  Step step_ ABSL_GUARDED_BY(mu_);
  uint32_t accumulated_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::unique_ptr<Arrival>> arrivals_ ABSL_GUARDED_BY(mu_);
  bool advancing_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t bytes_received_ ABSL_GUARDED_BY(mu_) = 0;
  StepTimes times_ ABSL_GUARDED_BY(mu_);
  Results results_ ABSL_GUARDED_BY(mu_);

  // Made when the first worker joins; then only the thread that set advancing_ touches them.
  std::unique_ptr<Accumulator> accumulator_;
  std::unique_ptr<SgdOptimizer> optimizer_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_H_
