// An optimizer of the program that runs the server, such as a class of torch.optim in Python. The
// server calls it where it would step itself.
//
// Its state is one vector of floats, so checkpoints, the journal and the checksums of steps treat
// it as they treat the state of Sluice's own optimizers: whoever has the state and the gradients of
// the later steps makes the same parameters again.

#ifndef SLUICE_COMMON_PROTOCOL_PROGRAM_OPTIMIZER_H_
#define SLUICE_COMMON_PROTOCOL_PROGRAM_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"

namespace sluice {

// One step on a whole vector. The spans of all steps of an optimizer are the same memory.
struct ProgramStep {
  uint64_t number = 1;  // the optimizer's first step is 1
  // One for the parameters that are in no group of the config, then one for each group.
  absl::Span<const double> learning_rates;
  absl::Span<float> parameters;  // become the next ones
  absl::Span<float> gradient;    // the mean; the step may change it
  absl::Span<float> state;       // zeros before the first step
};

// Externally synchronized.
class ProgramOptimizer {
 public:
  virtual ~ProgramOptimizer() = default;

  // How many floats of state it has. Always the same.
  virtual uint64_t state_size() const = 0;

  // Makes a step. After an error, what is in the spans does not matter. The result depends on
  // nothing but `step`: a step may be forgotten, and made anew from what was there before.
  virtual absl::Status Step(const ProgramStep& step) = 0;
};

// Makes the optimizer of a model, before its first step. Not null if it is OK. Several threads may
// call it at once, and what it makes may not be used.
using ProgramOptimizerFactory = std::function<absl::StatusOr<std::unique_ptr<ProgramOptimizer>>(
    const Layout& layout, const OptimizerConfig& config)>;

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_PROGRAM_OPTIMIZER_H_
