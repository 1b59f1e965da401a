#include "server/optimizers/optimizer.h"

#include <utility>

#include "server/optimizers/adagrad_optimizer.h"
#include "server/optimizers/adam_optimizer.h"
#include "server/optimizers/averaging_optimizer.h"
#include "server/optimizers/lamb_optimizer.h"
#include "server/optimizers/rmsprop_optimizer.h"
#include "server/optimizers/sgd_optimizer.h"

namespace sluice {
namespace {

// One overload for each kind, given the options of all groups.
struct Make {
  uint64_t size;

  std::unique_ptr<Optimizer> operator()(std::vector<SgdOptions> groups) const {
    return MakeSgdOptimizer(std::move(groups), size);
  }
  std::unique_ptr<Optimizer> operator()(std::vector<AveragingOptions> groups) const {
    return MakeAveragingOptimizer(groups.front());
  }
  std::unique_ptr<Optimizer> operator()(const std::vector<AdamOptions>& groups) const {
    return MakeAdamOptimizer(groups, size);
  }
  std::unique_ptr<Optimizer> operator()(const std::vector<AdamWOptions>& groups) const {
    return MakeAdamWOptimizer(groups, size);
  }
  std::unique_ptr<Optimizer> operator()(std::vector<AdagradOptions> groups) const {
    return MakeAdagradOptimizer(std::move(groups), size);
  }
  std::unique_ptr<Optimizer> operator()(std::vector<RmsPropOptions> groups) const {
    return MakeRmsPropOptimizer(std::move(groups), size);
  }
  std::unique_ptr<Optimizer> operator()(std::vector<LambOptions> groups) const {
    return MakeLambOptimizer(std::move(groups), size);
  }
};

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config, uint64_t size) {
  return std::visit(
      [&](const auto& options) {
        using Options = std::decay_t<decltype(options)>;
        std::vector<Options> groups = {options};
        for (const OptimizerGroup& group : config.groups) {
          groups.push_back(std::get<Options>(group.options));
        }
        return Make{size}(std::move(groups));
      },
      config.options);
}

}  // namespace sluice
