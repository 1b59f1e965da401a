// A worker's part in the protocol: joins, numbers its pushes, and keeps its parameters in step.

#ifndef SLUICE_WORKER_PARAMETER_CLIENT_H_
#define SLUICE_WORKER_PARAMETER_CLIENT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/exchange.h"
#include "worker/server_connection.h"

namespace sluice {

// What one round did.
struct RoundReport {
  Step step;  // whose parameters the worker holds now
  Disposition disposition = Disposition::kAccepted;
  uint64_t staleness = 0;  // of the gradient, when it was judged
};

// To be used by one thread at a time.
class ParameterClient {
 public:
  explicit ParameterClient(std::unique_ptr<ServerConnection> connection)
      : connection_(std::move(connection)) {}

  // Joins and fills `parameters`, which hold the model's own on entry: they become the job's if it
  // has none, else they are replaced.
  absl::Status Join(const JoinRequest& request, absl::Span<float> parameters);

  // Pushes the gradient of `samples` samples, computed on `parameters`, and replaces these by the
  // parameters to go on with: in sync the next step, which is waited for, in async the latest.
  absl::StatusOr<RoundReport> Exchange(absl::Span<const float> gradient, uint32_t samples,
                                       absl::optional<float> loss, absl::Span<float> parameters);

  // Waits until every worker has left, and takes the final parameters. For an observer's session.
  absl::Status AwaitEnd(absl::Span<float> parameters);

  // Ends the session; once.
  absl::Status Leave(const Results& results);

  const Welcome& welcome() const { return welcome_; }
  Step step() const { return step_; }

 private:
  absl::Status Pull(Step min_step, absl::Span<float> parameters);
  absl::Status Finish(std::unique_ptr<PendingPull> pull, const PullRequest& request,
                      absl::Span<float> parameters);

  const std::unique_ptr<ServerConnection> connection_;
  Welcome welcome_;
  Step step_;
  Sequence sequence_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_PARAMETER_CLIENT_H_
