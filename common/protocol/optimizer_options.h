// Functions on the options of any optimizer, which use the table (optimizer_table.h).
//
// The functions have no state: any thread may call them.

#ifndef SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_
#define SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/protocol/optimizer_table.h"

namespace sluice {

// Every optimizer with its default options, in the table's order.
std::vector<OptimizerOptions> AllOptimizers();

// "sgd", "adam", ...; and "SGD", "Adam", ... for sentences.
absl::string_view OptimizerName(const OptimizerOptions& options);
absl::string_view OptimizerTitle(const OptimizerOptions& options);

// Joins names to "a, b and c". `last` replaces "and".
std::string Listed(const std::vector<std::string>& names, absl::string_view last = "and");

// Makes an optimizer from its name and the values of some of its options, by their names; a switch
// is on if its value is not 0. BAD_OPTIMIZER names what does not exist; the values are not checked.
absl::StatusOr<OptimizerOptions> OptimizerNamed(absl::string_view name,
                                                const std::map<std::string, double>& values);

// One entry for each option, which refers to `options`.
std::vector<OptionRef> OptionsOf(OptimizerOptions& options);

// Returns the slots that the server stores for `options`, in a fixed order.
std::vector<SlotInfo> SlotsOf(const OptimizerOptions& options);

// Whether a step publishes the mean gradient in place of parameters, which only the workers have.
bool PublishesGradients(const OptimizerOptions& options);

// Whether the workers step with optimizers of their own: averaging, and the mean gradient.
bool WorkersStep(const OptimizerOptions& options);

// Whether it is the program's own, which only some servers have.
bool IsOfProgram(const OptimizerOptions& options);

// 0 if WorkersStep(): they have the learning rate.
double LearningRateOf(const OptimizerOptions& options);

// OK, or BAD_OPTIMIZER naming the first option that is outside its domain.
absl::Status Validate(const OptimizerOptions& options);

// An option that two optimizers of one kind have with other values, in words that tell these apart.
struct OptionDifference {
  std::string option;
  std::string first;
  std::string second;
};
absl::optional<OptionDifference> FirstDifference(OptimizerOptions first, OptimizerOptions second);

// OK if a worker's options equal the job's; else OPTIMIZER_MISMATCH naming the first option that
// differs. `where` (" in the group of ...") follows the option in the error.
absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker,
                                absl::string_view where = "");

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_OPTIMIZER_OPTIONS_H_
