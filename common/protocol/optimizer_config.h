// A job's optimizer: options for the whole model, and other options for groups of its parameters.
//
// Groups are what torch::optim calls parameter groups. They give biases no weight decay, for
// example, or pretrained parameters a smaller learning rate. All groups use the same optimizer. The
// functions here are pure; any thread may call them.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"

namespace sluice {

struct OptimizerGroup {
  std::vector<std::string> parameters;  // names of the layout
  OptimizerOptions options;             // complete, not only what differs
};

struct OptimizerConfig {
  OptimizerOptions options;                 // for the parameters that are in no group
  std::vector<OptimizerGroup> groups = {};  // empty with averaging
};

// OK, or BAD_OPTIMIZER. The error names the option that is outside its domain, the parameter that
// is in two groups, or the group that has another optimizer.
absl::Status Validate(const OptimizerConfig& config);

// OK if every name in a group is a parameter of the layout; else BAD_OPTIMIZER with the name that
// is not. `config` is valid.
absl::Status CheckFits(const OptimizerConfig& config, const Layout& layout);

// OK if a worker's config equals the job's; else OPTIMIZER_MISMATCH with the first difference.
absl::Status CheckSameOptimizer(const OptimizerConfig& job, const OptimizerConfig& worker);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
