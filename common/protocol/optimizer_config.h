// A job's optimizer: options for the whole model, and other options for groups of its parameters.
//
// Groups are what torch::optim calls parameter groups. They give biases no weight decay, for
// example, or pretrained parameters a smaller learning rate. All groups use the same optimizer. A
// table of rows may have an optimizer of its own, of any kind but averaging and LAMB. The functions
// here are pure; any thread may call them.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"

namespace sluice {

struct OptimizerGroup {
  std::vector<std::string> parameters;  // names of the layout
  OptimizerOptions options;             // complete, not only what differs
};

struct TableOptimizer {
  std::string table;  // a name of the layout
  OptimizerOptions options;
};

struct OptimizerConfig {
  OptimizerOptions options;                 // for what is in no group, and tables without their own
  std::vector<OptimizerGroup> groups = {};  // empty with averaging
  std::vector<TableOptimizer> tables = {};  // each table once at most
};

// How many learning rates a step has: that of `options`, then one for each group, then one for each
// of `tables`.
inline size_t RatesOf(const OptimizerConfig& config) {
  return 1 + config.groups.size() + config.tables.size();
}

// The options of that table.
const OptimizerOptions& OptionsFor(const OptimizerConfig& config, absl::string_view table);

// OK, or BAD_OPTIMIZER. The error names the option that is outside its domain, the parameter or
// table that is there twice, or the group that has another optimizer.
absl::Status Validate(const OptimizerConfig& config);

// OK if every name in a group is a parameter of the layout, and each table of the layout has an
// optimizer that works on single rows; else BAD_OPTIMIZER with the name. `config` is valid.
absl::Status CheckFits(const OptimizerConfig& config, const Layout& layout);

// OK if a worker's config equals the job's; else OPTIMIZER_MISMATCH with the first difference.
absl::Status CheckSameOptimizer(const OptimizerConfig& job, const OptimizerConfig& worker);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
