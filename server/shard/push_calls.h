// The calls of workers that bring vectors to the leader: pushes, and offers of initial parameters.
// The Coordinator judges a push at its header. The stripe of this server takes its part. When all
// servers have their parts, the Coordinator judges the push again, and it may count.

#ifndef SLUICE_SERVER_SHARD_PUSH_CALLS_H_
#define SLUICE_SERVER_SHARD_PUSH_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/executors.h"
#include "server/replica/server_stripe.h"
#include "server/shard/job_state.h"
#include "server/shard/step_loop.h"
#include "server/state/shard_options.h"

namespace sluice {

// Any thread may call any method. ParameterStore says what they do: BeginInitialize() is
// BeginOffer() here, BeginPush() is Begin(), and so on.
class PushCalls {
 public:
  // All outlive it.
  PushCalls(const ShardOptions& options, JobState& job, ServerStripe& stripe,
            ArrivedPushes& arrived, Executors& executors, StepLoop& steps)
      : options_(options),
        job_(job),
        stripe_(stripe),
        arrived_(arrived),
        executors_(executors),
        steps_(steps) {}

  absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session, uint32_t attempt)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::StatusOr<InitializeStart> BeginOffer(SessionId session, uint32_t attempt)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  PushId FinishOffer(std::unique_ptr<PendingPush> parameters, InitializeCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void AbandonOffer(std::unique_ptr<PendingPush> parameters) ABSL_LOCKS_EXCLUDED(job_.mu);

  PushId Begin(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
               std::function<void()> cancel) ABSL_LOCKS_EXCLUDED(job_.mu);
  bool Cancel(PushId id) ABSL_LOCKS_EXCLUDED(job_.mu);
  PushId Finish(std::unique_ptr<PendingPush> push, PushCallback done) ABSL_LOCKS_EXCLUDED(job_.mu);
  void Refuse(std::unique_ptr<PendingPush> push, const absl::Status& why, PushCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void Abandon(std::unique_ptr<PendingPush> push, Abandoned why) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Of a push or an offer that has finished here.
  bool CancelGathering(PushId id) ABSL_LOCKS_EXCLUDED(job_.mu);

  uint64_t bytes_received() const { return bytes_received_; }  // of all payloads, as float32

 private:
  void OnOfferGathered(const HaveReport& whole, const InitializeCallback& done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::StatusOr<InitializeOutcome> Adopt(std::unique_ptr<PendingPush> offer, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void TellReplicas(const PushName& name, const absl::StatusOr<Admission>& admission)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void Gather(std::unique_ptr<PendingPush> push, const HaveReport& own, PushCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void OnGathered(Arrival arrival, const HaveReport& whole) ABSL_LOCKS_EXCLUDED(job_.mu);
  PushCallback ReportingAttachments(const PushHeader& header, PushCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::Status CheckHeader(const PushHeader& header) const ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::StatusOr<absl::optional<InitializeOutcome>> AnswerOffer(SessionId session) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu);
  absl::Status CheckGroups(const PushHeader& header) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu);

  const ShardOptions& options_;
  JobState& job_;
  ServerStripe& stripe_;
  ArrivedPushes& arrived_;
  Executors& executors_;
  StepLoop& steps_;
  std::atomic<uint64_t> bytes_received_{0};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_PUSH_CALLS_H_
