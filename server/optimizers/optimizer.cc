#include "server/optimizers/optimizer.h"

#include <utility>

namespace sluice {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config, uint64_t size) {
  return std::visit(
      [&](const auto& options) {
        using Options = std::decay_t<decltype(options)>;
        std::vector<Options> groups = {options};
        for (const OptimizerGroup& group : config.groups) {
          groups.push_back(std::get<Options>(group.options));
        }
        return MakeOptimizerOf(std::move(groups), size);
      },
      config.options);
}

}  // namespace sluice
