#include "server/optimizers/row_optimizer.h"

#include <variant>

namespace sluice {

std::unique_ptr<RowOptimizer> MakeRowOptimizer(const OptimizerOptions& options) {
  return std::visit([](const auto& known) { return MakeRowOptimizerOf(known); }, options);
}

}  // namespace sluice
