// A job's optimizer and torch::optim's: the one as values, the other as LibTorch's users write it.

#ifndef SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
#define SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "common/protocol/optimizer_config.h"

namespace sluice {

// Of SGDOptions, AdamOptions, AdamWOptions, AdagradOptions or RMSpropOptions, with these for the
// whole model. Throws std::invalid_argument on any other.
OptimizerConfig ConfigOf(const torch::optim::OptimizerOptions& options);

// The same with torch::optim's parameter groups, which hold parameters of `module`; those without
// options have the defaults. Throws std::invalid_argument, too, if a tensor is none of the module's
// or a parameter that requires a gradient is in no group: torch::optim would never change it.
OptimizerConfig ConfigOf(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                         const torch::optim::OptimizerOptions& defaults,
                         const torch::nn::Module& module);

// The optimizer of torch::optim that does in this process what the server would do. Throws
// std::invalid_argument if there is none: of LAMB, and of averaging. `config` is valid, its names
// are the module's.
std::unique_ptr<torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerConfig& config,
                                                            const torch::nn::Module& module);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
