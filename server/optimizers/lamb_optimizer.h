// The elementwise half of LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning",
// algorithm 2), in float32. With g the gradient and t the number of the step:
//   m ← beta1 · m + (1 − beta1) · g
//   v ← beta2 · v + (1 − beta2) · g²
//   u = (m / (1 − beta1^t)) / (√v / √(1 − beta2^t) + eps) + weight_decay · p
// What it writes is u, the update; TrustRatios makes the next parameters of it.

#ifndef SLUICE_SERVER_OPTIMIZERS_LAMB_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_LAMB_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// For vectors of `size` elements, with the options of each group, which are valid. Keeps two
// numbers for each element.
std::unique_ptr<Optimizer> MakeLambOptimizer(std::vector<LambOptions> groups, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_LAMB_OPTIMIZER_H_
