// The parameters and the rules by which they change: the heart of the server.
//
// A shard owns a vector of parameters, knows who trains it, and turns gradients into steps. It is a
// plain object: no gRPC, no threads of its own, no clock but the one it is given. Whoever calls it
// lends its thread: the call that brings a step's last gradient also applies the step.
//
// The life of a push: BeginPush judges its header before any payload is read, and lets it in as
// soon as there is room; the PendingPush takes its chunks; FinishPush queues it. Queued pushes are
// then judged again, since the step may have moved, and entered in the step's contributions; added
// up in the order the policy asks for; and when the step is complete, the optimizer writes the next
// snapshot, which is published. The Coordinator decides all this, under the mutex;
// arithmetic and callbacks never run under it: the thread that set advancing_ alone touches the
// StepExecutor.
//
// All methods may be called from any thread. Errors are those of
// proto/sluice/v1/parameter_server.proto.

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

// An checkpoint, which nobody changes any more. Called outside all locks; training waits until it
// returns.
using CheckpointCallback =
    std::function<void(absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>)>;

class Shard {
 public:
  // `options` are valid; `clock` outlives the shard. `owner` is told all events, kDeserted too.
  // `parallel` does the arithmetic; if null, the calling thread does. `trace`, unless it is null,
  // outlives the shard.
  Shard(const ShardOptions& options, const Clock& clock, JobListener owner = nullptr,
        std::unique_ptr<Parallel> parallel = nullptr, Trace* trace = nullptr);

  // An earlier life of the server: goes on where an checkpoint of it was taken; makes a step that
  // it made after that, the next, again; and, in the end, begins its own life. `lives` are those
  // after the checkpoint's, with the step that each began at. All before the shard is shared; its
  // job, and its incarnation, which is a later one, were given to the constructor. Restore() has
  // DATA_LOSS for an checkpoint whose slots are not its optimizer's.
  absl::Status Restore(const ShardCheckpoint& checkpoint);
  void Replay(const StepRecord& record, absl::Span<const float> sum);
  void BeginIncarnation(const std::map<Incarnation, Step>& lives);
  // What an earlier life had made and this one does not go on from; workers are told. As above.
  void SetLostSteps(uint64_t steps);

  // Writes down each step, and holds answers until OnDurable() says that what they tell is kept.
  // Before the shard is shared; `log` outlives its use.
  void EnableJournal(StepJournal* log);
  void OnDurable(Step step);
  // Steps cannot be written down: pushes are refused with `trouble`, unless it is OK.
  void SetJournalError(const absl::Status& trouble);
  // Nothing will be kept any more: ends the wait for it. Without EnableJournal(), does nothing.
  void FailHeldAnswers(const absl::Status& why);

  // Calls `made` with each step before anybody learns of it. Before the shard is shared.
  void TellSteps(std::function<void(Step)> made);

  // Takes an checkpoint of the first parameters, and one after every `steps` steps, if that is not
  // 0, and calls `taken`. Before the shard is shared.
  void TakeCheckpoints(uint64_t steps, CheckpointCallback taken);

  // Takes one as soon as no step is being made, and calls `taken` with it, perhaps before it
  // returns. NOT_INITIALIZED if there are no parameters yet.
  void TakeCheckpoint(CheckpointCallback taken);

  // Opens a session; `listener` is told what happens to the job until the session ends.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener);

  // The session lives, though it has nothing else to say. Returns the server's step.
  absl::StatusOr<Step> Heartbeat(SessionId session);

  // The session's stream broke: its lease begins to run.
  void ConnectionLost(SessionId session);

  // Ends a session in good order. Returns the server's step.
  absl::StatusOr<Step> Leave(SessionId session, const Results& results);

  // First offer wins. FinishInitialize takes what BeginInitialize staged.
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session);
  absl::StatusOr<InitializeOutcome> FinishInitialize(std::unique_ptr<StagedVector> parameters);

  // Takes what the wire made of the header, so that a malformed one is in the counters too. `start`
  // is called once it is refused, answered or let in; a push that was let in ends with one of the
  // other three. `cancel`, if any, is called if the push's session ends while it is arriving.
  void BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                 std::function<void()> cancel = nullptr);
  // All of it has arrived, through PendingPush::Add() or GatheredPush.
  void FinishPush(std::unique_ptr<PendingPush> push, PushCallback done);
  // Its payload is wrong: `why`, as PendingPush::Add told it.
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why, PushCallback done);
  // It ends before it is whole, and nobody waits for an answer.
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why);

  // Answers when the shard has reached `request.min_step` and lets the worker go on, perhaps before
  // it returns. The id is for CancelPull, which returns true iff `done` will then not be called; it
  // is 0 if the pull did not wait.
  PullId Pull(const PullRequest& request, PullCallback done);
  bool CancelPull(PullId id);

  // For pulls whose answer is inconsistent: the newest snapshot whose elements before `end` are
  // written. Not before initialisation.
  std::shared_ptr<const Snapshot> Newest(uint64_t end) const;

  // Ends leases and waits that are over. To be called every now and then.
  void Tick();

  // The operator's. What changes does so at a step boundary: both return the first step that has
  // the new terms.
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  // Ends a worker's session; its process may not join again.
  absl::Status Evict(const std::string& worker);
  // Takes no more pushes and joins; waiting pulls end with DRAINING.
  void Drain();

  // Whether processes of the same node may read its parameters, and it theirs.
  bool shares_memory() const { return options_.snapshots == SnapshotMemory::kShared; }

  ShardStatus Describe() const;
  std::vector<SessionRecord> Sessions() const;   // in order of name
  Results results() const;                       // what leaving workers reported
  std::shared_ptr<const Layout> layout() const;  // null before the first worker joined
  Parallel& parallel() { return *parallel_; }

  // So many bytes of messages that hold tensors have come or gone. For the door; takes no lock.
  void CountWire(uint64_t received, uint64_t sent) {
    wire_bytes_received_.fetch_add(received, std::memory_order_relaxed);
    wire_bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
  }
  std::shared_ptr<const Snapshot> snapshot() const;  // null before initialisation
  std::string NameOf(SessionId session) const;       // of its worker or observer; empty: unknown
  Trace* trace() const { return trace_; }            // of this server, if any

 private:
  static constexpr char kStepsRow[] = "steps";  // of the trace

  PushCallback TellingAttachments(const PushHeader& header, PushCallback done) const;
  bool StartAdvancing() ABSL_LOCKS_EXCLUDED(mu_);
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  void Queue(Arrival arrival) ABSL_LOCKS_EXCLUDED(mu_);
  void Accumulate(const NextAction& work) ABSL_LOCKS_EXCLUDED(mu_);
  void Apply(const NextAction& work) ABSL_LOCKS_EXCLUDED(mu_);
  void WriteDown(const NextAction& work) ABSL_LOCKS_EXCLUDED(mu_);
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
  uint64_t steps_between_checkpoints_ ABSL_GUARDED_BY(mu_) = 0;  // 0: they are not asked for
  CheckpointCallback on_periodic_checkpoint_ ABSL_GUARDED_BY(mu_);
  std::vector<CheckpointCallback> checkpoint_callbacks_ ABSL_GUARDED_BY(mu_);  // of the next one

  StepJournal* log_ = nullptr;
  std::function<void(Step)> made_;

  // Made when the model is known; then only the thread that set advancing_ touches it.
  std::unique_ptr<StepExecutor> executor_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_H_
