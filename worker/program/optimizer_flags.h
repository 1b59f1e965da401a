// The command line's say in which optimizer trains, and how.

#ifndef SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_
#define SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/optimizer_options.h"

namespace CLI {
class App;
}

namespace sluice {

// As given; what is not there has the optimizer's own default.
struct OptimizerFlags {
  std::string optimizer = "sgd";
  std::map<std::string, double> numbers;  // by the flag's name, without dashes
  std::set<std::string> switches;         // those that are on
};

// Adds them to `app`, in a group of their own. `flags` outlives the parsing.
void AddOptimizerFlags(CLI::App& app, OptimizerFlags& flags);

// INVALID_ARGUMENT names the flag that is no option of that optimizer, or the value that is out of
// its domain.
absl::StatusOr<OptimizerOptions> OptimizerFrom(const OptimizerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_
