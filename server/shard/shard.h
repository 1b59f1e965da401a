// A shard is the core of the server: a vector of parameters and everything that changes it. It has
// no gRPC, and only the threads and the clock that it is given. gRPC's threads call it, and Server
// calls Tick().
//
// The path of a push (push_admission.h says more):
// 1. LeaderStore::BeginPush() judges the header. A push that is refused is answered at once; its
//    payload is never read.
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
// The mutex of JobState protects the Coordinator and the group. LeaderStore has the pushes and
// pulls of workers, StepLoop does what is due, DurabilityCalls restores and saves, and the shard
// itself has the rest: members, the operator, the other servers. Arithmetic, journal writes and
// callbacks run outside the mutex. A refused push, a push that breaks off, and a lost worker change
// no parameter.

#ifndef SLUICE_SERVER_SHARD_SHARD_H_
#define SLUICE_SERVER_SHARD_SHARD_H_

#include <functional>
#include <memory>
#include <string>
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
#include "server/policy/runtime_settings.h"
#include "server/replica/executors.h"
#include "server/replica/replica_commands.h"
#include "server/replica/replica_link.h"
#include "server/shard/durability_calls.h"
#include "server/shard/job_state.h"
#include "server/shard/leader_store.h"
#include "server/shard/state_calls.h"
#include "server/shard/step_loop.h"
#include "server/shard/tensor_summaries.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"

namespace sluice {

// Any thread may call any method, unless a comment says otherwise. Errors: parameter_server.proto.
class Shard {
 public:
  // `options` are valid. `clock` and `trace`, which may be null, outlive the shard. `owner` gets
  // all events, kDeserted too. Without `parallel` one thread does the arithmetic alone. The
  // destructor first waits for the executors.
  Shard(const ShardOptions& options, const Clock& clock, JobListener owner = nullptr,
        std::unique_ptr<Parallel> parallel = nullptr, Trace* trace = nullptr,
        Executors executors = Executors::Inline());
  ~Shard();
  // Leads the replicas on the other servers: link i goes to replica i + 1. The links outlive the
  // shard. Once, before all other methods. Describe() learns of all servers from `servers`, which
  // may be null. `pump` is for tests: it replaces the wait for replicas, and returns when `until`
  // is true.
  using Pump = JobState::Pump;
  void Lead(std::vector<ReplicaLink*> links,
            std::function<std::vector<ServerStatus>()> servers = nullptr, Pump pump = nullptr);
  void OnReport(uint32_t replica, const ReplicaReport& report);  // `replica`: from 1
  // The server goes down: waits for no replica from now on, and makes no step. A step that is being
  // made is not published. Pushes that are not part of a published step, and those who look at a
  // tensor, get `why`, an error.
  void StopWaiting(const absl::Status& why);
  void EndReplicas(int exit_code);  // sends EndJob, the last command; after StopWaiting()
  // Recovery, the journal and checkpoints.
  DurabilityCalls& durability() { return durability_; }
  // The calls of workers that carry vectors.
  LeaderStore& store() { return store_; }
  // The calls by which workers that have the model hand it to one another.
  StateCalls& states() { return states_; }
  // Members. `listener` receives the job's events until the session ends.
  absl::StatusOr<Welcome> Join(const JoinRequest& request, JobListener listener);
  // Renews the lease, and takes what was measured, if anything. Returns the step.
  absl::StatusOr<Step> Heartbeat(
      SessionId session, const absl::optional<StepMeasurement>& measurement = absl::nullopt);
  void ConnectionLost(SessionId session);  // the stream of Join broke; the lease begins to run
  absl::StatusOr<Step> Leave(SessionId session, const Farewell& farewell);  // returns the step
  void Tick();  // ends leases and waits that are over; call it every `options.tick`
  // zlib's CRC-32 of the bytes of all parameters, on all servers; absent if there are none. Call it
  // when the job ends: if another server does not answer within `longest`, it is absent, and no
  // step is made any more.
  absl::optional<uint32_t> Digest(absl::Duration longest) { return steps_.Digest(longest); }

  // Changes settings of the operator by `propose`, which is called once, with the mutex, or never.
  // Returns the first step that has them, or the error of `propose`.
  absl::StatusOr<Step> ChangeSettings(absl::FunctionRef<absl::Status(RuntimeSettings&)> propose)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::Status Evict(const std::string& worker);  // its process may not join again
  // From now on pushes, joins and waiting pulls of workers get `why`: DRAINING or DIVERGED.
  void Drain(const absl::Status& why = DrainingError());
  // Ends this incarnation, because another takes over. Calls, also of observers, get `why`, which
  // is UNAVAILABLE without a reason, so that they join again. Sends no event. Returns false, and
  // does nothing, if the job is over, goes down, or has no worker left.
  bool Suspend(const absl::Status& why);

  ShardStatus Describe() const;
  std::vector<SessionRecord> Sessions() const;  // in order of name; copies all, not for peers
  // Calls `read` with the mutex. session_queries.h has questions.
  void ReadSessions(absl::FunctionRef<void(const SessionRecords&)> read) const
      ABSL_LOCKS_EXCLUDED(job_.mu);
  Results results() const;  // that leaving workers reported
  // Of the whole vector; null before the first worker joined.
  std::shared_ptr<const Layout> layout() const;
  // Looks at a tensor of the latest step. There is one, and the query fits the layout. `done` is
  // called once: at once if the tensor is small and this is the only server, or else by a thread of
  // executors.summaries or by one that brings a report. RESOURCE_EXHAUSTED if too many calls wait;
  // UNAVAILABLE while a server loads its stripe; and the error of StopWaiting() after that.
  void Summarize(const TensorQuery& query, SummaryCallback done) ABSL_LOCKS_EXCLUDED(job_.mu);

 private:
  const ShardOptions options_;
  LeaderStore store_;  // it outlives what tasks and callbacks of the others still hold
  JobState job_;
  StepLoop steps_;
  StateCalls states_;
  DurabilityCalls durability_;
  std::function<std::vector<ServerStatus>()> servers_;  // or null
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_H_
