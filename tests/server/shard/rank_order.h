// Four workers whose gradients are added in the order of their ranks.

#ifndef SLUICE_TESTS_SERVER_SHARD_RANK_ORDER_H_
#define SLUICE_TESTS_SERVER_SHARD_RANK_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/testing/shard/shard_world.h"
#include "tests/testing/vectors.h"

namespace sluice {

inline ShardOptions InOrderOfRanks(uint32_t workers) {
  ShardOptions options = Sync(workers);
  options.consistency.order = ReductionOrder::kRank;
  return options;
}

// Workers in the order of their ranks, which is not that of their names; and gradients whose sum
// depends on the order of the additions.
inline const std::vector<std::string> kWorkers = {"d", "b", "c", "a"};
inline const std::vector<Values> kGradients = {
    {1e8f, 0.1f, 1}, {1, 0.2f, 1e-8f}, {-1e8f, 0.3f, -1}, {1, 1e7f, 3e-8f}};

// Subtracts the mean of `gradients`, added from the first to the last.
inline Values AfterStep(const std::vector<Values>& gradients) {
  Values parameters(3);
  for (size_t i = 0; i < parameters.size(); ++i) {
    float sum = gradients[0][i];
    for (size_t worker = 1; worker < gradients.size(); ++worker) sum += gradients[worker][i];
    parameters[i] -= sum / static_cast<float>(gradients.size());
  }
  return parameters;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_SHARD_RANK_ORDER_H_
