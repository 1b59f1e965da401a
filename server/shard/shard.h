// A shard is the core of the server: a vector of parameters and everything that changes it. It has
// no gRPC, and only the threads and the clock that it is given. gRPC's threads call it, and Server
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
// The Coordinator decides everything, with JobParts, and has no vector. The ServerStripe has all
// vectors and decides nothing. The shard joins the two by direct calls: it tells the stripe what
// the coordinator and the StepDirector have decided. It sends the same to the replicas on the other
// servers (ReplicaGroup), with the mutex, so that all have it in one order. A payload has arrived,
// and a step is made, when all servers have said so. One server is a group of one: the same calls,
// and nobody to wait for. With several, only executors.steps makes steps, because it waits for the
// other servers.
//
// The mutex of JobState protects the Coordinator and the group. PushCalls takes what workers bring,
// StepLoop does what is due, DurabilityCalls restores and saves, and the shard itself has the rest:
// members, pulls, the operator. Arithmetic, journal writes and callbacks run outside the mutex. A
// refused push, a push that breaks off, and a lost worker change no parameter.

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
#include "common/trace/trace.h"
#include "server/admission/draining.h"
#include "server/membership/session_queries.h"
#include "server/replica/executors.h"
#include "server/replica/parameter_store.h"
#include "server/replica/replica_commands.h"
#include "server/replica/replica_link.h"
#include "server/shard/durability_calls.h"
#include "server/shard/job_state.h"
#include "server/shard/push_calls.h"
#include "server/shard/state_calls.h"
#include "server/shard/step_loop.h"
#include "server/shard/tensor_summaries.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"
#include "server/state/step_journal.h"

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
  // Leads the replicas on the other servers: link i goes to replica i + 1. The links outlive the
  // shard. Once, before all other methods. `pump` is for tests: it replaces the wait for replicas,
  // and returns when `until` is true.
  using Pump = JobState::Pump;
  void Lead(std::vector<ReplicaLink*> links, Pump pump = nullptr);
  void OnReport(uint32_t replica, const ReplicaReport& report);  // `replica`: from 1
  // Where Describe() learns of all servers, if there are several. Once, before the server listens.
  void DescribeServersWith(std::function<std::vector<ServerStatus>()> servers);
  // The server goes down: waits for no replica from now on, and makes no step. A step that is being
  // made is not published. Pushes that are not part of a published step, and those who look at a
  // tensor, get `why`, an error.
  void StopWaiting(const absl::Status& why);
  void EndReplicas(int exit_code);  // sends EndJob, the last command; after StopWaiting()
  // Recovery, the journal and checkpoints.
  DurabilityCalls& durability() { return durability_; }
  const DurabilityCalls& durability() const { return durability_; }
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
                                                               uint32_t attempt = 0) override {
    return pushes_.JudgeOffer(session, attempt);
  }
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session, uint32_t attempt = 0) {
    return pushes_.BeginOffer(session, attempt);
  }
  PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                         std::function<void()> /*cancel*/) override {
    start(BeginInitialize(session, attempt));
    return PushId();
  }
  PushId FinishInitialize(std::unique_ptr<PendingPush> parameters,
                          InitializeCallback done) override {
    return pushes_.FinishOffer(std::move(parameters), std::move(done));
  }
  void AbandonInitialize(std::unique_ptr<PendingPush> parameters) override {
    pushes_.AbandonOffer(std::move(parameters));
  }
  PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                   std::function<void()> cancel = nullptr) override {
    return pushes_.Begin(header, std::move(start), std::move(cancel));
  }
  bool CancelPush(PushId id) override { return pushes_.Cancel(id); }
  PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) override {
    return pushes_.Finish(std::move(push), std::move(done));
  }
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                  PushCallback done) override {
    pushes_.Refuse(std::move(push), why, std::move(done));
  }
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) override {
    pushes_.Abandon(std::move(push), why);
  }
  bool CancelGathering(PushId id) override { return pushes_.CancelGathering(id); }
  // A pull may be answered when the shard has reached `request.min_step` and the mode lets the
  // worker continue.
  PullId Pull(const PullRequest& request, PullCallback done) override;
  bool CancelPull(PullId id) override;
  // The calls by which workers that have the model hand it to one another.
  StateCalls& states() { return states_; }
  // zlib's CRC-32 of the bytes of all parameters, on all servers; absent if there are none. Call it
  // when the job ends: if another server does not answer within `longest`, it is absent, and no
  // step is made any more.
  absl::optional<uint32_t> Digest(absl::Duration longest) { return steps_.Digest(longest); }

  // Both return the first step that has the setting. ABORTED if the rules are not the expected
  // ones.
  absl::StatusOr<Step> SetConsistency(const Consistency& consistency,
                                      const absl::optional<Consistency>& expected = absl::nullopt);
  absl::StatusOr<Step> SetLearningRate(double learning_rate);
  // The order of reduction of new rules in that mode that do not name one; see RuntimeSettings.
  ReductionOrder OrderFor(ConsistencyMode mode);
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
  bool is_striped() const override { return !links_.empty(); }
  std::shared_ptr<const Layout> layout()
      const;  // of the vector; null before the first worker joined
  // The latest; null before initialization.
  std::shared_ptr<const Snapshot> snapshot() const { return stripe().latest(); }
  // Looks at a tensor of the latest step. There is one, and the query fits the layout. `done` is
  // called once: at once if the tensor is small and this is the only server, or else by a thread of
  // executors.summaries or by one that brings a report. RESOURCE_EXHAUSTED if too many calls wait;
  // UNAVAILABLE while a server loads its stripe; and the error of StopWaiting() after that.
  void Summarize(const TensorQuery& query, SummaryCallback done) ABSL_LOCKS_EXCLUDED(job_.mu);
  std::string NameOf(SessionId session) const override;  // of its worker or observer

 private:
  absl::StatusOr<Step> ChangeSettings(absl::FunctionRef<absl::Status(RuntimeSettings&)> propose)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void DropPull(const PullName& name) ABSL_LOCKS_EXCLUDED(job_.mu);

  const ShardOptions options_;
  JobState job_;
  ArrivedPushes arrived_;
  StepLoop steps_;
  PushCalls pushes_;
  StateCalls states_;
  DurabilityCalls durability_;
  std::vector<ReplicaLink*> links_;                     // to the other servers
  std::function<std::vector<ServerStatus>()> servers_;  // or null
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_H_
