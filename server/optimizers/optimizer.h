// An optimizer turns the gradient of a step into the next parameters.
//
// CheckedOptimizer owns one for its stripe of the vector. Every optimizer works elementwise and in
// one pass over memory, so that a cut of the vector into pieces never changes a bit. LAMB needs
// norms of whole tensors as well: it writes updates, and TrustRatios makes parameters of them in a
// second pass. The config is valid, and the caller has checked all sizes.
//
// Slots are updated in place, and there is no way back. So a caller that wants finite numbers must
// know before Apply() that the step makes them: from After(), by arithmetic on a few bounds, or
// from Try(), by a pass over memory.

#ifndef SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"
#include "server/policy/ordered_momentum.h"

namespace sluice {

// What holds for all elements of one step.
struct OptimizerStep {
  uint64_t number = 1;  // the optimizer's first step is 1
  float divisor = 1;    // the gradient is sum / divisor
  // One for the parameters that are in no group, then one for each group of the config, then one
  // for each table with an optimizer of its own.
  std::vector<double> learning_rates = {0};
  // The caller has checked that they fit the config. The learning rates above hold for these
  // groups, too.
  SharedOptions changed;
  // Absent: the optimizer's own momentum. Only SGD with momentum and without Nesterov has another;
  // sgd_optimizer.cc has the formula.
  absl::optional<OrderedMomentum> ordered;
  // By what beta1 is divided; at least 1. Only Adam and AdamW read it.
  double momentum_divisor = 1;
  // Whether the slots of all elements begin in this step. Absent: they do in step 1.
  absl::optional<bool> fresh;

  bool begins() const { return fresh.value_or(number == 1); }
};

// A run of elements that starts at `begin` and lies in one group. The spans have equal sizes;
// `next` does not overlap the others.
struct OptimizerPiece {
  size_t group = 0;
  uint64_t begin = 0;
  absl::Span<const float> sum;
  absl::Span<const float> current;
  absl::Span<float> next;
};

// What an optimizer remembers of each element between steps. It starts as zeros.
struct OptimizerSlot {
  const char* name = "";
  absl::Span<float> values;
  size_t index = 0;  // in Options::slots()
};

inline constexpr size_t kMostSlots = 4;

// Where exact arithmetic stays below this magnitude, that of float32, whose largest number is
// 3.4e38, makes no infinity.
inline constexpr double kSafeMagnitude = 1e38;

// Upper bounds of magnitudes (absolute values). Each holds for all elements. Infinity and NaN tell
// nothing.
struct Magnitudes {
  // Before a step, this bounds sum / divisor. After a step, it also bounds all numbers that the
  // step computes from it on the way to the parameters and slots.
  double gradient = 0;
  double parameters = 0;
  std::array<double, kMostSlots> slots = {};  // by OptimizerSlot::index
};

// Externally synchronized, except for Apply().
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Starts a step. What follows belongs to it.
  virtual void Begin(const OptimizerStep& step) = 0;

  // Returns the magnitudes after the step, given those `before` it, or nothing if the optimizer has
  // no rule for them. If all of them are below kSafeMagnitude, the step makes finite numbers only.
  virtual absl::optional<Magnitudes> After(const Magnitudes& before) const = 0;

  // Computes `next` from `current` and the slots, and updates the slots. Called once for each
  // element of a step; several threads may call it at once with pieces that do not overlap.
  virtual void Apply(const OptimizerPiece& piece) = 0;

  // Computes the same `next`, and leaves the slots as they are. Returns the index in the vector of
  // the piece's first element with a new slot that would be NaN or infinite, if there is one. It
  // does not check `next`. Any number of threads may call it.
  virtual absl::optional<uint64_t> Try(const OptimizerPiece& piece) = 0;

  // The slots that the options need, in a fixed order, each as long as the vector. An optimizer of
  // the same config that gets these values and the number of steps continues with the same bits.
  virtual std::vector<OptimizerSlot> slots() = 0;
};

// Makes an optimizer for vectors of `size` elements. `config` is valid.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config, uint64_t size);

// Makes one for the options of each group. Only MakeOptimizer() calls it: the file of each
// optimizer's arithmetic instantiates it for the options of that optimizer.
template <typename Options>
std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<Options> groups, uint64_t size);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_
