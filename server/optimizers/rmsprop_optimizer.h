// RMSprop (Hinton 2012), also centered (Graves 2013) and with momentum.
//
// The formulas of torch::optim::RMSprop, in float32, in one pass over memory. With g the gradient:
//   g = g + weight_decay · p
//   s ← alpha · s + (1 − alpha) · g²
//   a ← alpha · a + (1 − alpha) · g            (only if centered)
//   d = √(s − a²) + eps if centered, else √s + eps
//   b ← momentum · b + g / d,  p ← p − learning_rate · b     if there is momentum
//   p ← p − learning_rate · g / d                            else
// Where rounding makes s − a² negative, of which torch::optim makes NaN, it counts as 0.

#ifndef SLUICE_SERVER_OPTIMIZERS_RMSPROP_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_RMSPROP_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// For vectors of `size` elements, with the options of each group, which are valid; the learning
// rates are each step's own. Keeps one number for each element, one more if a group has momentum,
// and one more if a group is centered.
std::unique_ptr<Optimizer> MakeRmsPropOptimizer(std::vector<RmsPropOptions> groups, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_RMSPROP_OPTIMIZER_H_
