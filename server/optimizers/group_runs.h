// Finds the elements of the vector that belong to each group of an optimizer's parameters. Pure
// functions, which are called once, when the job's layout and optimizer are known.

#ifndef SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_
#define SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"

namespace sluice {

// Elements [begin, end), all of one kind and in one group. Group 0 holds the parameters that are in
// no group of the config; group i + 1 is the config's group i.
struct GroupRun {
  RangeKind kind = RangeKind::kParameter;
  size_t group = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Returns one run for each range of the layout. `config` fits the layout (CheckFits()).
std::vector<GroupRun> RangeRuns(const Layout& layout, const OptimizerConfig& config);

// Joins neighbours of the same kind and group.
std::vector<GroupRun> Joined(const std::vector<GroupRun>& runs);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_
