// Estimates how many workers servers can feed, from what one gradient costs a server. In the
// formulas V is GradientCost::bytes, c is cpu_seconds, S is Site::servers, C is cores, N is
// bytes_per_second, M is worker_bytes_per_second and T is compute_seconds. The estimate spreads the
// work of a server evenly over its cores, and c evenly over S servers. Both flatter it for small
// vectors, where the cost of calls dominates.

#ifndef SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_
#define SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_

#include <cstdint>

namespace sluice::bench {

// The cost of one gradient for the server, with its pull and its part of the step.
struct GradientCost {
  double cpu_seconds = 0;
  double bytes = 0;  // of the vector, which the push brings and the pull takes
};

// Servers of one kind, each with an equal part of the vector, and workers of one kind.
struct Site {
  uint32_t servers = 1;
  double cores = 1;             // of each server
  double bytes_per_second = 0;  // N: of a server's network, each way
  double compute_seconds = 0;   // of a worker for one batch
  // M: of a worker's network, each way; 0: as a server's.
  double worker_bytes_per_second = 0;
};

struct Capacity {
  double by_cores = 0;              // S · C / c: gradients in a second, of all servers together
  double by_network = 0;            // S · N / V
  double gradients_per_second = 0;  // R: the lesser of both
  double saturating_workers = 0;    // R · T: with more, the servers are always busy
};

// Returns the limits when pushes and pulls are spread over time: in the asynchronous modes, or
// where they overlap with computation.
Capacity CapacityOf(const GradientCost& cost, const Site& site);

// Returns how long a round of W workers takes in sync mode without overlap, from the moment when
// all have their gradients. All push at once, then all pull at once, so it takes e(W) = max(2 ·
// max(W · V / (S · N), V / M), W · c / (S · C)).
double SyncRoundSeconds(const GradientCost& cost, const Site& site, uint32_t workers);

// Returns the largest W for which e(W) / (T + e(W)) ≤ `share`, which lies between 0 and 1. Returns
// 0 if one worker alone waits longer: its own network is too slow, and more servers do not help.
uint64_t WorkersWithin(const GradientCost& cost, const Site& site, double share);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SCALING_CAPACITY_H_
