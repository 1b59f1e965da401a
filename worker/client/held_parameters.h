// The parameters that a worker holds in its program's memory: offered to the server, and pulled.

#ifndef SLUICE_WORKER_CLIENT_HELD_PARAMETERS_H_
#define SLUICE_WORKER_CLIENT_HELD_PARAMETERS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/running_means.h"
#include "worker/client/pulled_means.h"
#include "worker/client/worker_session.h"

namespace sluice {

// Externally synchronized. Knows whether the memory has the parameters of one step. Where a pull
// broke off, it has a mixture, which is never offered.
class HeldParameters {
 public:
  using Restore = std::function<absl::Status(absl::Span<float> parameters)>;
  enum class Earlier { kNothing, kPushed, kLeft };  // what this process did in an earlier session

  // `session` outlives this.
  explicit HeldParameters(WorkerSession& session) : session_(session) {}

  // A model that the program holds, for jobs whose workers step themselves. Its bytes have all that
  // the steps so far have made: parameters, and the state of the program's optimizer.
  struct Model {
    std::function<absl::StatusOr<std::string>()> save;
    std::function<absl::Status(absl::string_view bytes)> load;
    // Whether another worker's is also taken at the job's beginning, where the parameters are not
    // all that the programs have.
    bool takes_others = false;
  };

  // See ParameterClient.
  bool step_to_take() const { return step_to_take_; }
  void RestoreBy(Restore restore, Model model) {
    restore_ = std::move(restore);
    model_ = std::move(model);
  }
  void KeepRunningMeans(RunningMeans elements) { running_elements_ = std::move(elements); }
  bool complete() const { return complete_; }
  absl::Status FitMeans(const Layout& layout);  // called before Begin()
  const PulledMeans& means() const { return means_; }

  // In a session that has begun, offers `parameters` to a job that has none, and fills them with
  // the job's. If the session breaks, it does so in a later one. After an error of a worker that
  // has pushed nothing, they are its own again, unless the program restores them.
  absl::Status Begin(Earlier earlier, absl::Span<float> parameters);

  // Starts a pull, and does what Finish() does.
  absl::Status Pull(Step min_step, absl::Span<float> parameters);
  // Reads a pull. Repeats it while other workers are late, and if it was damaged on its way.
  absl::StatusOr<Transfer> Finish(std::unique_ptr<PendingPull> pull, PullRequest request,
                                  absl::Span<float> parameters);
  // After a pull of a job whose workers step themselves: notes whether it has brought the mean
  // gradient of the model's next step. If the model is not that of the step before, takes it from
  // another worker. Also after kLeft, since the program did not see the step that was made without
  // it, and may have clipped that mean.
  absl::Status CatchUp(absl::Span<float> parameters, Earlier earlier = Earlier::kPushed);
  // After a call that got STATE_WANTED, which is then repeated, whatever this returns.
  absl::Status OfferModel();
  // Parameters that came with that header are in the program's memory.
  void Keep(const PullHeader& header, absl::Span<const float> parameters);

 private:
  absl::Status BeginWith(absl::Span<const float> own, Earlier earlier,
                         absl::Span<float> parameters);
  bool MustOffer() const;
  absl::Status TryToBegin(Earlier earlier, absl::Span<float> parameters);
  absl::Status PullOffered(const PullRequest& request, absl::Span<float> parameters);
  absl::Status TakeOthers(const PullRequest& request, absl::Span<float> parameters);
  bool IsUpToDate(Earlier earlier);
  absl::Status TakeModel(absl::Span<float> parameters);
  absl::StatusOr<Transfer> Read(PendingPull& pull, absl::Span<float> parameters);

  WorkerSession& session_;
  bool complete_ = true;
  Restore restore_;                // null: the memory holds nothing else
  RunningMeans running_elements_;  // that may be running means
  PulledMeans means_;
  Model model_;                           // null functions: the server has the model
  absl::optional<uint64_t> model_steps_;  // that it has made; nothing before the first pull
  Incarnation model_incarnation_;         // in which these were counted
  bool step_to_take_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_HELD_PARAMETERS_H_
