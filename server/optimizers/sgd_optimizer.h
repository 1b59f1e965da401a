// Stochastic gradient descent with momentum, dampening, Nesterov momentum and weight decay.
//
// The formulas of torch::optim::SGD, in float32, in one pass over memory. With g the gradient:
//   d = g + weight_decay · p
//   b = d at the first step, momentum · b + (1 − dampening) · d later   (only if momentum ≠ 0)
//   d = d + momentum · b if nesterov, else b                            (only if momentum ≠ 0)
//   p ← p − learning_rate · d

#ifndef SLUICE_SERVER_OPTIMIZERS_SGD_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_SGD_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// For vectors of `size` elements, with the options of each group, which are valid; the learning
// rates are each step's own. Keeps as many elements of momentum, if any group has momentum.
std::unique_ptr<Optimizer> MakeSgdOptimizer(std::vector<SgdOptions> groups, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_SGD_OPTIMIZER_H_
