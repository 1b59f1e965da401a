// The calls of workers that hand the model to one another, in a job of MeanGradientOptions.

#ifndef SLUICE_SERVER_SHARD_STATE_CALLS_H_
#define SLUICE_SERVER_SHARD_STATE_CALLS_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "server/admission/state_requests.h"
#include "server/replica/server_stripe.h"
#include "server/shard/job_state.h"
#include "server/shard/step_loop.h"

namespace sluice {

// Any thread may call any method.
class StateCalls {
 public:
  // All outlive it.
  StateCalls(JobState& job, const ServerStripe& stripe, StepLoop& steps)
      : job_(job), stripe_(stripe), steps_(steps) {}

  // Calls `done` with the model of the latest step, when another worker has offered it. Errors:
  // those of PullState. Returns an id for Cancel().
  StateRequestId Pull(SessionId session, absl::optional<uint64_t> steps, WorkerStateCallback done)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  bool Cancel(StateRequestId id) ABSL_LOCKS_EXCLUDED(job_.mu);  // true: `done` will not be called

  // Begins an offer of the session, which must end: EndOffer(). BAD_ARGUMENT if it is not asked, or
  // offers already. `most` is how many bytes it may have.
  absl::StatusOr<StateOfferId> BeginOffer(SessionId session, uint64_t* most)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  // Takes the bytes that the offer has brought, whose XXH3-64 is `checksum`. Fail(): takes the
  // reason why the worker cannot write its model.
  void HandOn(StateOfferId offer, std::string bytes, uint64_t checksum)
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void Fail(StateOfferId offer, const std::string& failure) ABSL_LOCKS_EXCLUDED(job_.mu);
  void EndOffer(StateOfferId offer) ABSL_LOCKS_EXCLUDED(job_.mu);

 private:
  absl::Status CheckWorker(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu);

  JobState& job_;
  const ServerStripe& stripe_;
  StepLoop& steps_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_STATE_CALLS_H_
