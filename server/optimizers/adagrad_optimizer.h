// Adagrad (Duchi, Hazan, Singer 2011).
//
// The formulas of torch::optim::Adagrad, in float32, in one pass over memory. With g the gradient
// and t the number of the step:
//   g = g + weight_decay · p
//   s ← s + g², where s begins with initial_accumulator_value
//   p ← p − learning_rate / (1 + (t − 1) · lr_decay) · g / (√s + eps)

#ifndef SLUICE_SERVER_OPTIMIZERS_ADAGRAD_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ADAGRAD_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// For vectors of `size` elements, with the options of each group, which are valid; the learning
// rates are each step's own. Keeps one number for each element.
std::unique_ptr<Optimizer> MakeAdagradOptimizer(std::vector<AdagradOptions> groups, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ADAGRAD_OPTIMIZER_H_
