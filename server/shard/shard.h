// A shard: a vector of parameters and everything that changes it. It is the core of the server.
//
// A shard owns the parameters, the accumulator, the optimizer, and the records of all workers. It
// is a plain object: it has no gRPC, no thread and no clock of its own. The rpc layer calls it from
// gRPC's threads, and Server calls Tick() from its main thread.
//
// The path of a push:
// 1. BeginPush() takes the header. The gate checks session, sequence and staleness. A push that
//    fails is answered at once, and its payload is never read.
// 2. When the in-flight limit admits the push, `start` gets a PendingPush. The rpc layer adds the
//    chunks to it, without the mutex; each chunk is checked when it arrives.
// 3. FinishPush() queues the complete push. The gate checks it again, because the step may have
//    grown, and adds it to the contributions of the current step.
// 4. Its gradient is accumulated. When the policy says that the step is complete, the optimizer
//    writes the next snapshot, the snapshot is published, and the step grows by one.
// 5. The push is answered; if it counted and there is a journal, only after its step is durable.
//    Pulls that wait for the step are answered.
//
// Threads: all methods may be called from any thread, unless a comment says otherwise. Under the
// mutex runs only the Coordinator, which decides everything and does no arithmetic. The thread that
// finds work due and nobody working sets `advancing_`, does all work that is due, in Advance(), and
// only then returns. So the call that brings the last gradient of a step also applies the step.
// Arithmetic, journal writes and callbacks run outside the mutex.
//
// Failure: a refused push, a push that breaks off, and a lost worker change no parameter. Errors
// are those of proto/sluice/v1/parameter_server.proto.

#ifndef SLUICE_SERVER_SHARD_SHARD_H_
#define SLUICE_SERVER_SHARD_SHARD_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/parallel.h"
#include "common/protocol/protocol_types.h"
#include "common/trace/trace.h"
#include "server/admission/gate.h"
#include "server/admission/pull_queue.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/step_executor.h"
#include "server/shard/coordinator.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_status.h"
#include "server/state/step_journal.h"

namespace sluice {

// Receives an immutable checkpoint, or NOT_INITIALIZED. Called outside all locks. Training waits
// until it returns.
using CheckpointCallback =
    std::function<void(absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>)>;

class Shard {
 public:
  // `options` are valid. `clock` outlives the shard, as does `trace`, unless it is null. `owner`
  // receives all events, including kDeserted. `parallel` runs the arithmetic; if null, the calling
  // thread does.
  Shard(const ShardOptions& options, const Clock& clock, JobListener owner = nullptr,
        std::unique_ptr<Parallel> parallel = nullptr, Trace* trace = nullptr);

  // ---- Start: optional, in this order, before several threads use the shard ----

  // Restore() loads a checkpoint. DATA_LOSS if its slots are not those of its optimizer.
  absl::Status Restore(const ShardCheckpoint& checkpoint);
  // Replay() applies one journaled step, the next one. `sum` is the sum of its gradients.
  void Replay(const StepRecord& record, absl::Span<const float> sum);
  // Begins the incarnation that the constructor's options give. `incarnations` are those between
  // the checkpoint's and this one, each with the step that it began at.
  void BeginIncarnation(const std::map<Incarnation, Step>& incarnations);
  // Sets how many steps of earlier incarnations could not be recovered. Workers are told.
  void SetLostSteps(uint64_t steps);
  // From now on each step is appended to `journal`, which outlives the shard, and answers wait for
  // OnDurable().
  void EnableJournal(StepJournal* journal);
  // Calls `listener` with each step before it is published.
  void SetStepListener(std::function<void(Step)> listener);
  // From now on takes a checkpoint of the initial parameters and, unless `steps` is 0, after every
  // `steps` steps.
  void TakeCheckpoints(uint64_t steps, CheckpointCallback taken);

  // ---- Durability ----

  // The journal has made all steps up to `step` durable.
  void OnDurable(Step step);
  // Refuses new pushes with `error`, until it is called with OK.
  void SetJournalError(const absl::Status& error);
  // The journal has ended: answers all pushes that wait for it with `why`, now and later.
  void FailHeldAnswers(const absl::Status& why);
  // Takes a checkpoint as soon as no step is being applied, perhaps before it returns.
  // NOT_INITIALIZED if there are no parameters.
  void TakeCheckpoint(CheckpointCallback taken);

  // ---- Members ----

  // Opens a session. `listener` receives the job's events until the session ends.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener);
  // Renews the session's lease. Returns the server's step.
  absl::StatusOr<Step> Heartbeat(SessionId session);
  // The session's stream broke. The worker is lost, and its lease begins to run.
  void ConnectionLost(SessionId session);
  // Ends a session at the worker's request. Returns the server's step.
  absl::StatusOr<Step> Leave(SessionId session, const Results& results);
  // Ends leases and waits that are over. Call it every `options.tick`.
  void Tick();

  // ---- Initial parameters: the first complete offer becomes step 0 ----

  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session);
  // Takes the vector of BeginInitialize(), filled.
  absl::StatusOr<InitializeOutcome> FinishInitialize(std::unique_ptr<StagedVector> parameters);

  // ---- Pushes ----

  // Takes a header, or the error that it was received with, which is counted too. Calls `start`
  // when the push is refused, answered or admitted. An admitted push must end with exactly one of
  // the three methods below. `cancel`, if any, is called if its session ends while it arrives.
  void BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                 std::function<void()> cancel = nullptr);
  // The payload has arrived.
  void FinishPush(std::unique_ptr<PendingPush> push, PushCallback done);
  // The payload is invalid; `why` is the error of PendingPush::Add() or GatheredPush.
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why, PushCallback done);
  // The push ends early, and nobody waits for an answer.
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why);

  // ---- Pulls ----

  // Calls `done`, perhaps before it returns, when the shard has reached `request.min_step` and the
  // mode lets the worker continue. Returns an id for CancelPull(), or 0 if the pull did not wait.
  PullId Pull(const PullRequest& request, PullCallback done);
  // Returns true if `done` will not be called.
  bool CancelPull(PullId id);
  // For inconsistent reads: the newest snapshot whose elements before `end` are final. Not before
  // initialization.
  std::shared_ptr<const Snapshot> Newest(uint64_t end) const;

  // ---- The operator's calls ----

  // Both change a setting at the next step boundary and return the first step that has it.
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  // Ends a worker's session. Its process may not join again.
  absl::Status Evict(const std::string& worker);
  // Refuses pushes and joins from now on, and ends waiting pulls of workers with DRAINING.
  void Drain();

  // ---- Status ----

  ShardStatus Describe() const;
  std::vector<SessionRecord> Sessions() const;       // in order of name
  Results results() const;                           // that leaving workers reported
  std::shared_ptr<const Layout> layout() const;      // null before the first worker joined
  std::shared_ptr<const Snapshot> snapshot() const;  // the latest; null before initialization
  std::string NameOf(SessionId session) const;       // of its worker or observer; empty if unknown
  Parallel& parallel() { return *parallel_; }
  Trace* trace() const { return trace_; }  // null if the server has none
  // Whether tensors may go through shared memory to and from processes of this node.
  bool shares_memory() const { return options_.snapshots == SnapshotMemory::kShared; }
  // Counts bytes of tensor messages. The rpc layer calls it for each message, so it takes no lock.
  void CountWire(uint64_t received, uint64_t sent) {
    wire_bytes_received_.fetch_add(received, std::memory_order_relaxed);
    wire_bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
  }

 private:
  static constexpr char kStepsRow[] = "steps";  // the row of the trace

  PushCallback ReportingAttachments(const PushHeader& header, PushCallback done) const;
  bool StartAdvancing() ABSL_LOCKS_EXCLUDED(mu_);
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  void Queue(Arrival arrival) ABSL_LOCKS_EXCLUDED(mu_);
  void Accumulate(const NextAction& action) ABSL_LOCKS_EXCLUDED(mu_);
  void Apply(const NextAction& action) ABSL_LOCKS_EXCLUDED(mu_);
  void AppendToJournal(const NextAction& action) ABSL_LOCKS_EXCLUDED(mu_);
  void MakeCheckpoint() ABSL_LOCKS_EXCLUDED(mu_);
  void RequestPeriodicCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ShardOptions options_;
  const Clock& clock_;
  std::unique_ptr<Parallel> parallel_;
  std::atomic<uint64_t> wire_bytes_received_{0};
  std::atomic<uint64_t> wire_bytes_sent_{0};
  Trace* const trace_;

  mutable absl::Mutex mu_;
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  bool advancing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t steps_between_checkpoints_ ABSL_GUARDED_BY(mu_) = 0;  // 0: none are taken
  CheckpointCallback on_periodic_checkpoint_ ABSL_GUARDED_BY(mu_);
  std::vector<CheckpointCallback> checkpoint_callbacks_ ABSL_GUARDED_BY(mu_);  // for the next one

  StepJournal* journal_ = nullptr;
  std::function<void(Step)> step_listener_;

  // Created when the model is known. After that only the thread that set advancing_ uses it.
  std::unique_ptr<StepExecutor> executor_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_H_
