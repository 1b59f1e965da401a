// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), both with AMSGrad (Reddi et al.
// 2018) if asked for.
//
// The formulas of torch::optim, in float32, in one pass over memory. With g the gradient and t the
// number of the step:
//   g = g + weight_decay · p                                           (Adam)
//   p = p − learning_rate · weight_decay · p                           (AdamW)
//   m ← beta1 · m + (1 − beta1) · g
//   v ← beta2 · v + (1 − beta2) · g²
//   p ← p − learning_rate · (m / (1 − beta1^t)) / (√v / √(1 − beta2^t) + eps)
// and with amsgrad the largest v so far in place of v.

#ifndef SLUICE_SERVER_OPTIMIZERS_ADAM_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ADAM_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// For vectors of `size` elements, with the options of each group, which are valid; the learning
// rates are each step's own. Keeps two numbers for each element, three if a group has amsgrad.
std::unique_ptr<Optimizer> MakeAdamOptimizer(const std::vector<AdamOptions>& groups, uint64_t size);
std::unique_ptr<Optimizer> MakeAdamWOptimizer(const std::vector<AdamWOptions>& groups,
                                              uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ADAM_OPTIMIZER_H_
