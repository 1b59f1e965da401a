// A shard is the core of the server: a vector of parameters and everything that changes it. It has
// no gRPC and no clock, and only the threads that it is given. gRPC's threads call it, and Server
// calls Tick().
//
// The path of a push (push_admission.h says more):
// 1. BeginPush() judges the header. A refused push is answered at once; its payload is never read.
// 2. When the in-flight limit admits the push, the rpc layer adds its chunks, without the mutex.
// 3. FinishPush() judges the push again. Then its gradient is added to the sum of the step.
// 4. When the step is complete, the optimizer writes the next snapshot, which is published. If the
//    result is not finite, the step is made without its gradients: only the step's number changes.
// 5. The push is answered; with a journal, only after its step is durable. Then pulls are answered.
//
// The Coordinator decides everything and has no vector. The Holder has all vectors and decides
// nothing. The shard joins the two by direct calls: it tells the holder what the coordinator and
// the StepDirector have decided. With several servers it leads: it also sends this to the holders
// on the other servers (HolderGroup), with the mutex, so that all have it in the order of the
// decisions. A payload has arrived, and a step is made, when all holders have said so. Steps then
// run on executors.steps only, which waits for the holders.
//
// The mutex protects the Coordinator and the Holder. A thread that finds work due and
// nobody working has all of it done, in Advance(): by executors.steps, or by itself if the model
// has at most kPartElements and no step is noted in a file. Arithmetic, journal writes and
// callbacks run outside the mutex. A refused push, a push that breaks off, and a lost worker change
// no parameter.

#ifndef SLUICE_SERVER_SHARD_SHARD_H_
#define SLUICE_SERVER_SHARD_SHARD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/parallel.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/float_buffer.h"
#include "common/trace/trace.h"
#include "server/admission/draining.h"
#include "server/admission/gate.h"
#include "server/admission/pull_queue.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/step_director.h"
#include "server/holder/holder.h"
#include "server/holder/holder_commands.h"
#include "server/holder/holder_link.h"
#include "server/shard/checkpoint_requests.h"
#include "server/shard/coordinator.h"
#include "server/shard/executors.h"
#include "server/shard/holder_group.h"
#include "server/shard/parameter_store.h"
#include "server/shard/step_stopwatch.h"
#include "server/shard/tensor_summaries.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"
#include "server/state/step_journal.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// Any thread may call any method, unless a comment says otherwise. Errors: parameter_server.proto.
class Shard final : public ParameterStore {
 public:
  // `options` are valid. `clock` and `trace`, which may be null, outlive the shard. `owner` gets
  // all events, kDeserted too. Without `parallel` one thread does the arithmetic alone. The
  // destructor first waits for the executors.
  Shard(const ShardOptions& options, const Clock& clock, JobListener owner = nullptr,
        std::unique_ptr<Parallel> parallel = nullptr, Trace* trace = nullptr,
        Executors executors = Executors::Inline());
  ~Shard() override;
  // Leads the holders on the other servers: link i goes to holder i + 1. The links outlive the
  // shard. Once, before all other methods. `pump` is for tests: it replaces the wait for holders,
  // and returns when `until` is true.
  using Pump = std::function<void(absl::FunctionRef<bool()> until)>;
  void Lead(std::vector<HolderLink*> links, Pump pump = nullptr);
  void OnReport(uint32_t holder, const HolderReport& report);  // `holder`: from 1
  // Where Describe() learns of all servers, if there are several. Once, before several threads use
  // the shard.
  void DescribeServersWith(std::function<std::vector<ServerStatus>()> servers);
  // The server goes down: waits for no holder from now on, and makes no step. A step that is being
  // made is not published. Pushes that are not part of a published step, and those who look at a
  // tensor, get `why`, an error.
  void StopWaiting(const absl::Status& why);
  void EndHolders(int exit_code);  // sends EndJob, the last command; after StopWaiting()
  // Start: optional, in this order, before several threads use the shard.
  // Enclose a recovery during which other threads call the shard. Until EndRecovery(), Join() and
  // changes of settings fail with UNAVAILABLE. Until BeginIncarnation(), TakeCheckpoint() does,
  // too.
  void BeginRecovery();
  void EndRecovery();
  bool recovers() const;  // is between the two
  // DATA_LOSS if its slots do not fit. With several servers it has this server's stripe, and the
  // others begin to load theirs. Join() fails with UNAVAILABLE until all have reported. `begins`:
  // the incarnations since the checkpoint, and where each began.
  absl::Status Restore(const ShardCheckpoint& checkpoint, const IncarnationBegins& begins = {});
  // Waits until the other servers have loaded their stripes. The error of StopWaiting() after that.
  absl::StatusOr<LeastJournaled> AwaitLoaded();
  // Makes the next journaled step again; on all servers, if all have it in their journals.
  // FAILED_PRECONDITION if it comes out with other bits. Another server tells so only when it
  // fails to save the next checkpoint.
  absl::Status Replay(const StepRecord& record, absl::Span<const float> sum,
                      absl::Span<const TableSums> rows);
  // Begins the new incarnation. `incarnations`: those since the checkpoint, and where each began.
  void BeginIncarnation(const IncarnationBegins& incarnations);
  void SetLostSteps(uint64_t steps);  // lost steps of earlier incarnations; workers are told
  // `journal` outlives the shard. It gets each step from now on, and answers wait for OnDurable().
  void EnableJournal(StepJournal* journal);
  void SetStepListener(std::function<void(Step)> listener);  // called before a step is published
  // Takes a checkpoint of the initial parameters and, unless `steps` is 0, every `steps` steps.
  void TakeCheckpoints(uint64_t steps, CheckpointCallback taken);

  // From now on, `save` gets a checkpoint, or an error, when training ends. The end is announced
  // when OnEndSaved() is called with the checkpoint's step or the error. Recover() calls it.
  void SaveEndWith(CheckpointCallback save);
  void OnEndSaved(const absl::StatusOr<Step>& saved) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `done` at once, unless training is over and its end is still to be saved. In that case
  // calls `done` when the end is saved or cannot be saved. `done` gets an error if the servers go
  // back to an earlier step before that.
  void WhenEndIsSaved(std::function<void(const absl::Status&)> done) ABSL_LOCKS_EXCLUDED(mu_);

  void OnDurable(Step step);  // all steps up to this one are in the journals of all servers
  void SetJournalError(const absl::Status& error);  // refuses new pushes with it, until it is OK
  void FailHeldAnswers(const absl::Status& why);    // fails answers held by the journal, for good
  void TakeCheckpoint(CheckpointCallback taken);  // when no step is being applied, perhaps at once
  void KeepCheckpoints(std::vector<CheckpointKey> keep);  // tells the other servers which are whole
  // Members. `listener` receives the job's events until the session ends.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener);
  // Renews the lease, and takes what was measured, if anything. Returns the step.
  absl::StatusOr<Step> Heartbeat(
      SessionId session, const absl::optional<StepMeasurement>& measurement = absl::nullopt);
  void ConnectionLost(SessionId session);  // the stream of Join broke; the lease begins to run
  absl::StatusOr<Step> Leave(SessionId session, const Farewell& farewell);  // returns the step
  void Tick();  // ends leases and waits that are over; call it every `options.tick`
  // See ParameterStore.
  absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session,
                                                               uint32_t attempt = 0) override;
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session, uint32_t attempt = 0);
  PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                         std::function<void()> /*cancel*/) override {
    start(BeginInitialize(session, attempt));
    return PushId();
  }
  PushId FinishInitialize(std::unique_ptr<PendingPush> parameters,
                          InitializeCallback done) override;
  void AbandonInitialize(std::unique_ptr<PendingPush> parameters) override;
  PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                   std::function<void()> cancel = nullptr) override;
  bool CancelPush(PushId id) override;
  PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) override;
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                  PushCallback done) override;
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) override;
  bool CancelGathering(PushId id) override;
  // A pull may be answered when the shard has reached `request.min_step` and the mode lets the
  // worker continue.
  PullId Pull(const PullRequest& request, PullCallback done) override;
  bool CancelPull(PullId id) override;
  std::shared_ptr<const Snapshot> Newest(uint64_t end) const override;
  // zlib's CRC-32 of the bytes of all parameters, on all servers; absent if there are none. Call it
  // when the job ends: if another server does not answer within `longest`, it is absent, and no
  // step is made any more.
  absl::optional<uint32_t> Digest(absl::Duration longest);

  // Both return the first step that has the setting. ABORTED if the rules are not the expected
  // ones.
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency,
                                      const absl::optional<Consistency>& expected = absl::nullopt);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  // The order of reduction of new rules in that mode that do not name one; see RuntimeSettings.
  ReductionOrder OrderFor(ConsistencyMode mode) const;
  absl::Status Evict(const std::string& worker);  // its process may not join again
  // From now on pushes, joins and waiting pulls of workers get `why`: DRAINING or DIVERGED.
  void Drain(const absl::Status& why = DrainingError());
  // Ends this incarnation, because another takes over. Calls, also of observers, get `why`, which
  // is UNAVAILABLE without a reason, so that they join again. Sends no event. Returns false, and
  // does nothing, if the job is over, goes down, or has no worker left.
  bool Suspend(const absl::Status& why);

  ShardStatus Describe() const;
  std::vector<SessionRecord> Sessions() const;  // in order of name; copies all, not for peers
  std::vector<SessionRecord> WorkersAfter(const std::string& name, size_t most) const;  // a page
  ObserverPlaces PlacesFor(const std::string& observer) const;
  Results results() const;  // that leaving workers reported
  bool is_striped() const override { return leads_; }
  std::shared_ptr<const Layout> held_layout() const override;
  std::shared_ptr<const Layout> layout()
      const;  // of the vector; null before the first worker joined
  std::shared_ptr<const Snapshot> snapshot() const;  // the latest; null before initialization
  // Looks at a tensor of the latest step. There is one, and the query fits the layout. `done` is
  // called once: at once if the tensor is small and this is the only server, or else by a thread of
  // executors.summaries or by one that brings a report. RESOURCE_EXHAUSTED if too many calls wait;
  // UNAVAILABLE while a server loads its stripe; and the error of StopWaiting() after that.
  void Summarize(const TensorQuery& query, SummaryCallback done) ABSL_LOCKS_EXCLUDED(mu_);
  std::string NameOf(SessionId session) const override;  // of its worker or observer
  Parallel& parallel() override { return *parallel_; }
  // Drain them, when no calls come any more, before what steps use is destroyed: the journal, and
  // what listeners and callbacks refer to.
  Executors& executors() override { return executors_; }
  Trace* trace() const override { return trace_; }
  bool shares_memory() const override { return options_.snapshots == SnapshotMemory::kShared; }
  WireBytes& wire_bytes() override { return wire_bytes_; }
  ActivePulls& active_pulls() override { return active_pulls_; }
  const SpanListener& on_span() const override { return options_.on_span; }

 private:
  static constexpr char kStepsRow[] = "steps";  // the row of the trace

  absl::StatusOr<Step> ChangeSettings(absl::FunctionRef<absl::StatusOr<Step>(Coordinator&)> change)
      ABSL_LOCKS_EXCLUDED(mu_);
  // An action, and the gradient of its contribution.
  struct Work {
    NextAction action;
    std::unique_ptr<PendingPush> gradient;
  };

  // How far the shard is, if other threads use it meanwhile.
  enum class Recovery { kRepeats, kSaves, kDone };
  absl::Status CheckRecovered(Recovery at_least) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status MakeAgain(const StepRecord& record, absl::Span<const float> sum,
                         absl::Span<const TableSums> rows) ABSL_LOCKS_EXCLUDED(mu_);
  bool leads() const { return leads_; }
  void DescribeServers(ShardStatus* status) const;
  void TellHolders(const PushName& name, const absl::StatusOr<Admission>& admission)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndSessions() ABSL_LOCKS_EXCLUDED(mu_);
  void DropPull(const PullName& name) ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<RowTables> TablesHere() const ABSL_LOCKS_EXCLUDED(mu_);
  void Gather(std::unique_ptr<PendingPush> push, const HaveReport& own, PushCallback done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnGathered(Arrival arrival, const HaveReport& whole) ABSL_LOCKS_EXCLUDED(mu_);
  void OnOfferGathered(const HaveReport& whole, const InitializeCallback& done)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<InitializeOutcome> Adopt(std::unique_ptr<PendingPush> offer, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  PushCallback ReportingAttachments(const PushHeader& header, PushCallback done);
  bool StartAdvancing() ABSL_LOCKS_EXCLUDED(mu_);
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  Work DecideNext() ABSL_LOCKS_EXCLUDED(mu_);
  void DoAll(Work work) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(Work work) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsLarge() const ABSL_LOCKS_EXCLUDED(mu_);
  void Queue(std::unique_ptr<PendingPush> push, const absl::Status& refused, PushCallback done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Accumulate(const Work& work) ABSL_LOCKS_EXCLUDED(mu_);
  void Apply(const Work& work) ABSL_LOCKS_EXCLUDED(mu_);
  void Publish(const Work& work, std::shared_ptr<const Snapshot> made, Completions* completions)
      ABSL_LOCKS_EXCLUDED(mu_);
  GradientWeight Weigh(const Work& work, bool last) ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<FloatBuffer> MemoryFor(const Admission& admission) ABSL_LOCKS_EXCLUDED(mu_);
  SnapshotPair BeginStep(PushId first = PushId()) ABSL_LOCKS_EXCLUDED(mu_);
  SnapshotPair MakeStep(const Work& work, uint64_t* checksum) ABSL_LOCKS_EXCLUDED(mu_);
  // A step, or a look at the latest snapshot, and what kMake tells of it.
  struct StepWork {
    SnapshotPair snapshots;
    WriteProgress progress = nullptr;
    uint64_t* checksum = nullptr;  // may be null
  };
  absl::optional<BadNumber> MakeOn(const StepWork& work, const StepTerms& terms)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<StripeReport> CarryOnAll(const StepOrder& order, const StepWork& work,
                                       absl::Duration longest = absl::InfiniteDuration())
      ABSL_LOCKS_EXCLUDED(mu_);
  void LeaveOut(const BadNumber& bad, Step step) ABSL_LOCKS_EXCLUDED(mu_);
  void AppendToJournal(const NextAction& action, uint64_t checksum) ABSL_LOCKS_EXCLUDED(mu_);
  void AnswerIfEndIsSaved(Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeCheckpoint(const NextAction& action) ABSL_LOCKS_EXCLUDED(mu_);
  void RequestPeriodicCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OpenModel(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const ShardOptions options_;
  const Clock& clock_;
  std::unique_ptr<Parallel> parallel_;
  WireBytes wire_bytes_;
  ActivePulls active_pulls_;
  Trace* const trace_;
  mutable absl::Mutex mu_;
  bool leads_ = false;  // there are other holders
  Pump pump_;
  std::function<std::vector<ServerStatus>()> servers_;  // or null
  Holder holder_ ABSL_GUARDED_BY(mu_);
  HolderGroup others_ ABSL_GUARDED_BY(mu_);
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  bool advancing_ ABSL_GUARDED_BY(mu_) = false;
  Recovery recovery_ ABSL_GUARDED_BY(mu_) = Recovery::kDone;
  CheckpointRequests checkpoints_ ABSL_GUARDED_BY(mu_);
  StepJournal* journal_ = nullptr;
  bool saves_ = false;           // checkpoints are taken by themselves
  CheckpointCallback save_end_;  // or null
  std::vector<std::function<void(const absl::Status&)>> await_end_ ABSL_GUARDED_BY(mu_);
  absl::Time await_end_since_ ABSL_GUARDED_BY(mu_);
  std::function<void(Step)> step_listener_;
  // Only the advancing thread uses them. The last two are null before the model is known.
  StepStopwatch stopwatch_;
  std::unique_ptr<StepDirector> director_;
  ModelExecutor* model_ = nullptr;  // the holder's
  Executors executors_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_H_
