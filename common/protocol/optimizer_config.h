// A job's optimizer: options for the whole model, and other options for groups of its parameters.
//
// Groups are what torch::optim calls parameter groups. They give biases no weight decay, for
// example, or pretrained parameters a smaller learning rate. All groups use the same optimizer. A
// table of rows may have an optimizer of its own, of any kind but averaging and LAMB. The functions
// here are pure; any thread may call them.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_

#include <cstdint>
#include <map>
#include <memory>
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

// Options that groups have in place of those of the job's config, because the workers' programs
// have changed them. Immutable.
class ChangedOptions {
 public:
  // By the group: 0 is that of the parameters in no group, and of tables without an optimizer of
  // their own; i + 1 is OptimizerConfig::groups[i].
  using Groups = std::map<uint32_t, OptimizerOptions>;

  explicit ChangedOptions(Groups groups);

  const Groups& groups() const { return groups_; }
  // Equal options have equal checksums in one process, and others hardly ever.
  uint64_t checksum() const { return checksum_; }

 private:
  Groups groups_;
  uint64_t checksum_;
};
using SharedOptions = std::shared_ptr<const ChangedOptions>;  // null: none have changed

// Null if there are none.
SharedOptions ShareOptions(ChangedOptions::Groups groups);

// The options of the group with that number, which must exist: `changed` ones, or the config's.
const OptimizerOptions& OptionsOf(const OptimizerConfig& config, const SharedOptions& changed,
                                  uint32_t group);

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

// OK if the job's steps can be made with `changed`; else BAD_OPTIMIZER. It names the group and what
// is wrong: there is no such group, an option is outside its domain, or it needs a slot that the
// group has not had from the first step on. `job` is valid.
absl::Status CheckChanged(const OptimizerConfig& job, const SharedOptions& changed);

// Returns an option that differs, with both values and the group, or "" if there is none:
// "learning_rate is 0.1, and 0.2 with worker-0". Both fit `job`. Fast if they are equal.
std::string DifferenceOf(const OptimizerConfig& job, const SharedOptions& changed,
                         const SharedOptions& others, absl::string_view other);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_CONFIG_H_
