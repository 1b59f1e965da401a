// The local steps of a worker (local_steps.h): the optimizer that takes them, and the averaging of
// this worker's parameters with the server's.

#ifndef SLUICE_WORKER_TORCH_LOCAL_TRAINING_H_
#define SLUICE_WORKER_TORCH_LOCAL_TRAINING_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "worker/client/parameter_client.h"
#include "worker/torch/flat_model.h"
#include "worker/training/local_steps.h"

namespace sluice {

// RemoteOptimizer owns it and uses it in one thread.
class LocalTraining {
 public:
  // `model` holds the parameters of `module`, as the server has them, and outlives this. `config`
  // is the optimizer's. Throws std::invalid_argument if torch::optim does not have it.
  LocalTraining(const LocalSteps& options, const OptimizerConfig& config, torch::nn::Module& module,
                FlatModel& model);

  // Takes a step on the gradient of `samples` samples. `factor` is the server's: from the first
  // that is not 1 on, the learning rates are the config's times it. Until then they are the
  // program's. Returns whether it is time to push.
  bool Step(uint32_t samples, double factor);
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  // Whether there are steps that were not pushed.
  bool has_steps() const { return steps_ > 0; }
  // Pushes the parameters, and writes the averaged ones to the model. Returns the errors of
  // ParameterClient::PushPull().
  absl::StatusOr<RoundReport> Push(ParameterClient& client, absl::optional<float> loss);

 private:
  void MoveTowardsCentre(absl::Span<float> values) const;
  void TakeStatistics(absl::Span<float> values) const;

  const LocalSteps options_;
  const OptimizerConfig config_;
  FlatModel& model_;
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<float> centre_;  // elastic averaging: the server's parameters of the last push
  bool scheduled_ = false;     // by the server's factor
  uint32_t steps_ = 0;         // since the last push
  uint32_t samples_ = 0;       // of these steps
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_LOCAL_TRAINING_H_
