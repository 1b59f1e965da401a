// The flags of a program that choose an optimizer and its options.
//
// There is one flag for each option that an optimizer of the table has
// (common/protocol/optimizer_table.h). Averaging is no choice of --optimizer: a program averages
// with
// --local-steps.

#ifndef SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_
#define SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/optimizer_options.h"
#include "worker/training/local_steps.h"

namespace CLI {
class App;
}

namespace sluice {

// The optimizer's options on the command line. An option that is absent has its default.
struct OptimizerFlags {
  std::string optimizer = "sgd";
  std::map<std::string, double> values;  // by the option's name; a switch that is on is 1
};

// Adds the flags to `app`, in a group of their own. `flags` must outlive the parsing.
void AddOptimizerFlags(CLI::App& app, OptimizerFlags& flags);

// INVALID_ARGUMENT names a flag that the chosen optimizer does not have, or a value that is outside
// its domain.
absl::StatusOr<OptimizerOptions> OptimizerFrom(const OptimizerFlags& flags);

// Adds the flags of how the server averages parameters: all options of `local` but `every` and
// `elasticity`. `local` must outlive the parsing.
void AddAveragingFlags(CLI::App& app, LocalSteps& local);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_OPTIMIZER_FLAGS_H_
