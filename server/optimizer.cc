#include "server/optimizer.h"

#include "server/averaging_optimizer.h"
#include "server/sgd_optimizer.h"

namespace sluice {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerOptions& options, uint64_t size) {
  if (const auto* averaging = std::get_if<AveragingOptions>(&options)) {
    return MakeAveragingOptimizer(*averaging);
  }
  return MakeSgdOptimizer({std::get<SgdOptions>(options)}, size);
}

}  // namespace sluice
