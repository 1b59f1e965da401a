// Which elements of the vector have which of an optimizer's options.

#ifndef SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_
#define SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"

namespace sluice {

// Elements [begin, end), all of one kind and one group. Group 0 are the parameters that are in no
// group, group i + 1 those of the config's group i.
struct GroupRun {
  RangeKind kind = RangeKind::kParameter;
  size_t group = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// One for each range of the layout, which `config` fits.
std::vector<GroupRun> RangeRuns(const Layout& layout, const OptimizerConfig& config);

// Neighbours of one kind and one group joined.
std::vector<GroupRun> Joined(const std::vector<GroupRun>& runs);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_GROUP_RUNS_H_
