// The parameter store of the leader, or of the only server: the calls of workers that carry
// vectors. The Coordinator judges a push at its header. The stripe of this server takes its part.
// When all servers have their parts, the Coordinator judges the push again, and it may count. The
// Coordinator also says when a pull is answered.

#ifndef SLUICE_SERVER_SHARD_LEADER_STORE_H_
#define SLUICE_SERVER_SHARD_LEADER_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/parallel.h"
#include "common/trace/trace.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/arrived_pushes.h"
#include "server/replica/executors.h"
#include "server/replica/parameter_store.h"
#include "server/shard/job_state.h"
#include "server/state/shard_options.h"

namespace sluice {

class StepLoop;

// Any thread may call any method. ParameterStore says what they do.
class LeaderStore final : public ParameterStore {
 public:
  // `options`, `job` and `steps` outlive it. The other arguments are those of ParameterStore.
  LeaderStore(const ShardOptions& options, JobState& job, StepLoop& steps,
              std::unique_ptr<Parallel> parallel, Trace* trace, Executors executors)
      : ParameterStore(options.snapshots, options.table_memory, std::move(parallel),
                       std::move(executors), trace, options.on_span),
        options_(options),
        job_(job),
        steps_(steps) {}

  absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session,
                                                               uint32_t attempt = 0) override
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::StatusOr<InitializeStart> BeginInitialize(SessionId session, uint32_t attempt = 0)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                         std::function<void()> /*cancel*/) override {
    start(BeginInitialize(session, attempt));
    return PushId();
  }
  PushId FinishInitialize(std::unique_ptr<PendingPush> parameters, InitializeCallback done) override
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void AbandonInitialize(std::unique_ptr<PendingPush> parameters) override
      ABSL_LOCKS_EXCLUDED(job_.mu);

  PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                   std::function<void()> cancel = nullptr) override ABSL_LOCKS_EXCLUDED(job_.mu);
  bool CancelPush(PushId id) override ABSL_LOCKS_EXCLUDED(job_.mu);
  PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) override
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                  PushCallback done) override ABSL_LOCKS_EXCLUDED(job_.mu);
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) override
      ABSL_LOCKS_EXCLUDED(job_.mu);
  bool CancelGathering(PushId id) override ABSL_LOCKS_EXCLUDED(job_.mu);

  // A pull may be answered when the shard has reached `request.min_step` and the mode lets the
  // worker continue.
  PullId Pull(const PullRequest& request, PullCallback done) override ABSL_LOCKS_EXCLUDED(job_.mu);
  bool CancelPull(PullId id) override ABSL_LOCKS_EXCLUDED(job_.mu);

  bool is_striped() const override { return !job_.links.empty(); }
  std::string NameOf(SessionId session) const override ABSL_LOCKS_EXCLUDED(job_.mu);

  // For the other parts of the shard: what changes the stripe, and the pushes that it has gathered.
  using ParameterStore::mutable_stripe;
  ArrivedPushes& arrived() { return arrived_; }

 private:
  absl::StatusOr<InitializeOutcome> Adopt(const HaveReport& whole) ABSL_LOCKS_EXCLUDED(job_.mu);
  void TellReplicas(const PushName& name, const absl::StatusOr<Admission>& admission)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void Gather(std::unique_ptr<PendingPush> push, const HaveReport& own, PushCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void OnGathered(Arrival arrival, const HaveReport& whole) ABSL_LOCKS_EXCLUDED(job_.mu);
  PushCallback ReportingAttachments(const PushHeader& header, PushCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::Status CheckHeader(const PushHeader& header) const ABSL_LOCKS_EXCLUDED(job_.mu);
  void DropPull(const PullName& name) ABSL_LOCKS_EXCLUDED(job_.mu);

  const ShardOptions& options_;
  JobState& job_;
  StepLoop& steps_;
  ArrivedPushes arrived_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_LEADER_STORE_H_
