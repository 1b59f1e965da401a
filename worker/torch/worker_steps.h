// The steps of a worker that steps itself: it takes them with the program's optimizer, on the mean
// of all workers' gradients, and hands the model to a worker that comes late.

#ifndef SLUICE_WORKER_TORCH_WORKER_STEPS_H_
#define SLUICE_WORKER_TORCH_WORKER_STEPS_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "worker/client/parameter_client.h"
#include "worker/torch/flat_model.h"

namespace sluice {

// RemoteOptimizer owns it and uses it in one thread.
class WorkerSteps {
 public:
  // `optimizer` and `model`, which is `module`'s and carries gradients both ways, outlive this.
  // Throws std::invalid_argument for LBFGS, and if the optimizer's groups do not hold the
  // parameters of the module that require a gradient, and no others.
  WorkerSteps(torch::optim::Optimizer& optimizer, const torch::nn::Module& module,
              FlatModel& model);

  torch::optim::Optimizer& optimizer() { return optimizer_; }

  // What the client hands to a worker that comes late, and takes from one: parameters, and what the
  // optimizer writes to an archive. Learning rates stay this worker's. It refers to this.
  ParameterClient::Model Handing();
  // Whether another worker's model was taken.
  bool has_taken() const { return has_taken_; }

  // Throws RemoteError if a step has broken off: the model is not the others' any more.
  void CheckWhole() const;
  // Throws std::invalid_argument if the optimizer's parameters are others than at first.
  void CheckGroups() const;

  // After each call of the client that pulls: what it has brought becomes the gradients.
  void TakeMean(const HeldParameters& held);
  bool has_mean() const { return has_mean_; }  // since then, until Step()

  // Bounds the mean's norm in the next Step(), or at once if the mean is there.
  void ClipNorm(double max_norm);
  // Takes a step with the mean, unless that has brought none.
  void Step();
  // Before the next gradients are computed. Throws RemoteError if a step is due.
  void Forget();

 private:
  std::vector<const void*> Stepped() const;
  bool SavesNothing() const;
  void CheckCanBeHanded() const;
  absl::StatusOr<std::string> Save() const;
  absl::Status Load(absl::string_view bytes);

  torch::optim::Optimizer& optimizer_;
  FlatModel& model_;
  const std::vector<std::pair<std::string, torch::Tensor>> trained_;
  const std::vector<const void*> stepped_;  // the optimizer's parameters at first
  absl::optional<double> clip_norm_;        // of the next step
  bool has_taken_ = false;
  bool has_mean_ = false;
  bool step_to_take_ = false;  // with the mean
  bool has_stepped_ = false;
  bool broken_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_WORKER_STEPS_H_
