// Converts options of torch::optim to an OptimizerConfig, and makes an optimizer of torch::optim
// from an OptimizerConfig. RemoteOptimizer and the local learner call these functions on the thread
// that trains.

#ifndef SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
#define SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/optimizer_config.h"

namespace sluice {

// Returns the config that has `options` for the whole model. Throws std::invalid_argument if they
// do not belong to SGD, Adam, AdamW, Adagrad or RMSprop.
OptimizerConfig ConfigOf(const torch::optim::OptimizerOptions& options);

// Does the same for torch::optim's parameter groups, which hold parameters of `module`. A group
// without options gets `defaults`. Also throws std::invalid_argument if a group holds a tensor that
// is not the module's, or if a parameter that requires a gradient is in no group, because
// torch::optim would never change that parameter.
OptimizerConfig ConfigOf(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                         const torch::optim::OptimizerOptions& defaults,
                         const torch::nn::Module& module);

// The parameters of `module` that require a gradient, each under the first of its names.
std::vector<std::pair<std::string, torch::Tensor>> Trained(const torch::nn::Module& module);

// The names of the parameters in each of `groups`, without those that are frozen. Throws
// std::invalid_argument as above.
std::vector<std::vector<std::string>> NamesIn(
    const std::vector<torch::optim::OptimizerParamGroup>& groups, const torch::nn::Module& module);

// Whether torch::optim has this optimizer. It lacks LAMB and averaging.
bool HasTorchOptimizer(const OptimizerOptions& options);

// Makes an optimizer of torch::optim for `module`'s parameters. It computes what the server would
// compute with `config`. Its groups are those of the config, after one for the parameters that are
// in none of them. That one is left out if there are no such parameters, unless it is kept for
// tables. Throws std::invalid_argument if
// HasTorchOptimizer() is false. `config` has passed Validate(), and its groups name parameters of
// `module`.
std::unique_ptr<torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerConfig& config,
                                                            const torch::nn::Module& module,
                                                            bool for_tables = false);

// Sets the learning rate of each group of `optimizer`, which MakeTorchOptimizer() made of `config`,
// to `factor` times the config's.
void SetLearningRates(const OptimizerConfig& config, double factor,
                      torch::optim::Optimizer& optimizer);

// The options of groups of `optimizer`, which MakeTorchOptimizer() made of `config`, that are not
// the config's any more.
ChangedOptions::Groups ChangedIn(torch::optim::Optimizer& optimizer, const OptimizerConfig& config);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TORCH_OPTIMIZERS_H_
