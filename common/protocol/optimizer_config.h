// A job's optimizer: options for the whole model, and others for groups of its parameters.
//
// What torch::optim calls parameter groups: no weight decay for biases, say, or a smaller learning
// rate for what is trained already. All groups have one kind of optimizer.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"

namespace sluice {

struct OptimizerGroup {
  std::vector<std::string> parameters;  // their names in the layout
  OptimizerOptions options;             // all of them, not only those that differ
};

struct OptimizerConfig {
  OptimizerOptions options;                 // of the parameters that are in no group
  std::vector<OptimizerGroup> groups = {};  // averaging has none
};

// OK, or BAD_OPTIMIZER naming the option that is out of its domain, the parameter that is in two
// groups, or the group of another kind.
absl::Status Validate(const OptimizerConfig& config);

// OK if all that is in a group is a parameter of that layout; else BAD_OPTIMIZER naming what is
// not. `config` is valid.
absl::Status CheckFits(const OptimizerConfig& config, const Layout& layout);

// OK if a worker's config equals the job's; else OPTIMIZER_MISMATCH naming the first difference.
absl::Status CheckSameOptimizer(const OptimizerConfig& job, const OptimizerConfig& worker);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
