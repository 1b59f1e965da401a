// The mean of what workers made of the parameters, by themselves: periodic and elastic averaging.
//
// Workers push parameters in place of gradients. With m their mean and r the moving rate:
//   p ← p + r · (m − p), and p ← m, to the bit, if r is 1
// (Zhang, Choromanska, LeCun 2015, "Deep Learning with Elastic Averaging SGD", equation 6.)

#ifndef SLUICE_SERVER_OPTIMIZERS_AVERAGING_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_AVERAGING_OPTIMIZER_H_

#include <memory>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// `options` are valid.
std::unique_ptr<Optimizer> MakeAveragingOptimizer(const AveragingOptions& options);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_AVERAGING_OPTIMIZER_H_
