#include "tools/bench/scaling/capacity.h"

#include <algorithm>
#include <cmath>

namespace sluice::bench {
namespace {

// Allows for rounding: 10 workers that fit exactly count as 10.
constexpr double kTolerance = 1e-9;

}  // namespace

Capacity CapacityOf(const GradientCost& cost, const Site& site) {
  Capacity capacity;
  capacity.by_cores = site.servers * site.cores / cost.cpu_seconds;
  capacity.by_network = site.servers * site.bytes_per_second / cost.bytes;
  capacity.gradients_per_second = std::min(capacity.by_cores, capacity.by_network);
  capacity.saturating_workers = capacity.gradients_per_second * site.compute_seconds;
  return capacity;
}

double SyncRoundSeconds(const GradientCost& cost, const Site& site, uint32_t workers) {
  const Capacity capacity = CapacityOf(cost, site);
  const double of_worker =
      site.worker_bytes_per_second > 0 ? site.worker_bytes_per_second : site.bytes_per_second;
  const double own_network = cost.bytes / of_worker;  // each way
  const double network = std::max(workers / capacity.by_network, own_network);
  return std::max(2 * network, workers / capacity.by_cores);
}

uint64_t WorkersWithin(const GradientCost& cost, const Site& site, double share) {
  const double allowed = site.compute_seconds * share / (1 - share) * (1 + kTolerance);
  if (SyncRoundSeconds(cost, site, 1) > allowed) return 0;
  const Capacity capacity = CapacityOf(cost, site);
  const double workers = std::min(allowed * capacity.by_network / 2, allowed * capacity.by_cores);
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(workers)));
}

}  // namespace sluice::bench
