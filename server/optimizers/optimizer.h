// What turns the gradient of a step into the next parameters.
//
// One interface for all optimizers; each works elementwise in one pass over memory, so that how a
// vector is cut into pieces never changes a bit. LAMB alone needs norms of whole tensors: what it
// writes is an update, of which TrustRatios makes the next parameters in a second pass.

#ifndef SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"

namespace sluice {

// What holds for all elements of one step.
struct OptimizerStep {
  uint64_t number = 1;  // in this optimizer's life, from 1 on
  float divisor = 1;    // the gradient is sum / divisor
  // Of each group: the parameters in no group, then the config's groups.
  std::vector<double> learning_rates = {0};
};

// Elements from `begin` of the vector on, all of them parameters of one group. The spans have one
// size; `next` overlaps no other.
struct OptimizerPiece {
  size_t group = 0;
  uint64_t begin = 0;
  absl::Span<const float> sum;
  absl::Span<const float> current;
  absl::Span<float> next;
};

// What an optimizer remembers of each element, beside the parameters: zeros at first.
struct OptimizerSlot {
  const char* name = "";  // torch::optim's
  absl::Span<float> values;
};

// Externally synchronized, but for Apply().
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // What the next pieces belong to.
  virtual void Begin(const OptimizerStep& step) = 0;

  // Writes to `next` what the step makes of `current`, and renews the slots; once for each element.
  // Several threads may do so at once, each with pieces of its own.
  virtual void Apply(const OptimizerPiece& piece) = 0;

  // Those that its options need, in a fixed order, each as long as the vector. With them and the
  // number of steps its life goes on elsewhere.
  virtual std::vector<OptimizerSlot> slots() = 0;
};

// For vectors of `size` elements. `config` is valid.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_
