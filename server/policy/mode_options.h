// The options of a mode that nobody chose, and the words for those that hold.
//
//   quorum         backup: 5 % of the workers, and at least one, are left for backups (Chen et al.
//                  2016 trained fastest with 4 of 100). Bounded, async: 1.
//   max_staleness  bounded: twice the steps that all workers together make while each computes one
//                  gradient. Without stragglers, n workers cause staleness n / quorum on average,
//                  and hardly ever more than twice that (Zhang et al. 2016, "Staleness-Aware
//                  Async-SGD"). So only gradients of stragglers are dropped.
//   slack          ssp: a few pushes, however many workers there are (Ho et al. 2013).

#ifndef SLUICE_SERVER_POLICY_MODE_OPTIONS_H_
#define SLUICE_SERVER_POLICY_MODE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "common/protocol/consistency.h"

namespace sluice {

inline constexpr uint32_t kDefaultSlack = 3;

// In gradients per step; at least 1. `workers` may be 0.
uint32_t DefaultQuorum(ConsistencyMode mode, uint32_t workers);

// In steps; at least 2. `quorum` is at least 1; `workers` may be 0.
uint32_t DefaultMaxStaleness(uint32_t workers, uint32_t quorum);

// How many pushes a step takes from all workers together, whether they count or not: in sync and
// backup one of each. `workers` is at least 1.
uint32_t PushesPerStep(const Consistency& consistency, uint32_t workers);

// The mode and its options in words, for the log: "bounded, quorum 1, max_staleness 6".
std::string DescribeMode(const Consistency& consistency);

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_MODE_OPTIONS_H_
