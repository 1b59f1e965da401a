// How many workers servers can feed, computed from what a gradient costs one of them. The formulas
// are in tools/bench/README.md.

#ifndef SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_
#define SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_

#include <cstdint>

namespace sluice::bench {

// What one gradient costs the server, its pull and its participant of the step included.
struct GradientCost {
  double cpu_seconds = 0;
  double bytes = 0;  // that come, and as many that go
};

// Servers of one kind, each with an equal participant of the vector. Workers have the same network.
struct Site {
  uint32_t servers = 1;
  double cores = 1;             // of each server
  double bytes_per_second = 0;  // of the network, each way
  double compute_seconds = 0;   // of a worker for one batch
};

struct Capacity {
  double by_cores = 0;  // gradients in a second, of all servers together
  double by_network = 0;
  double gradients_per_second = 0;  // the lesser of both
  double saturating_workers = 0;    // from here on the servers are busy all the time
};

// When pushes and pulls are spread over time: computation overlaps with them, or nobody waits for
// anybody.
Capacity CapacityOf(const GradientCost& cost, const Site& site);

// In sync mode without overlap: how long a round takes from the moment when all `workers` have
// their gradients. All push at once, then all pull at once.
double SyncRoundSeconds(const GradientCost& cost, const Site& site, uint32_t workers);

// The most workers that spend at most `share` of a step (0 < share < 1) in such rounds; 0 if one
// worker alone spends more.
uint64_t WorkersWithin(const GradientCost& cost, const Site& site, double share);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_
