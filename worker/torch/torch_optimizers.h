// Converts between a job's optimizer, which is plain values, and the options and optimizers of
// torch::optim. Used by RemoteOptimizer, by local training and by local steps, in the thread that
// trains.

#ifndef SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
#define SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "common/protocol/optimizer_config.h"

namespace sluice {

// The config with these options for the whole model. Throws std::invalid_argument if they are not
// those of SGD, Adam, AdamW, Adagrad or RMSprop.
OptimizerConfig ConfigOf(const torch::optim::OptimizerOptions& options);

// The same with torch::optim's parameter groups, which hold parameters of `module`. A group without
// options has `defaults`. Throws std::invalid_argument also if a group holds a tensor that is not
// the module's, or if a parameter that requires a gradient is in no group: torch::optim would never
// change it.
OptimizerConfig ConfigOf(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                         const torch::optim::OptimizerOptions& defaults,
                         const torch::nn::Module& module);

// False for LAMB, averaging, and whatever else torch::optim lacks.
bool HasTorchOptimizer(const OptimizerOptions& options);

// Makes the optimizer of torch::optim that does in this process what the server would do. Throws
// std::invalid_argument if HasTorchOptimizer() is false. `config` is valid, and its names are the
// module's.
std::unique_ptr<torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerConfig& config,
                                                            const torch::nn::Module& module);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
