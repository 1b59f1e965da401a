// An optimizer turns the gradient of a step into the next parameters.
//
// StepExecutor owns one for the job. Every optimizer works elementwise and in one pass over memory,
// so that a cut of the vector into pieces never changes a bit. LAMB needs norms of whole tensors as
// well: it writes updates, and TrustRatios makes parameters of them in a second pass. The config is
// valid, and the caller has checked all sizes.
//
// A step is made beside the state before it: Apply() writes new slots to memory of their own, and
// Commit() puts them in the place of the old ones. A step whose numbers are not finite is never
// committed, so it leaves nothing behind.

#ifndef SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/optimizer_config.h"

namespace sluice {

// What holds for all elements of one step.
struct OptimizerStep {
  uint64_t number = 1;  // the optimizer's first step is 1
  float divisor = 1;    // the gradient is sum / divisor
  // One for the parameters that are in no group, then one for each group of the config.
  std::vector<double> learning_rates = {0};
  // Whether the caller reads a piece's new slots right after Apply(), so that they must stay in the
  // caches.
  bool reads_slots = false;
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
};

// Externally synchronized, except for Apply().
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Starts a step. The pieces that follow belong to it. A step that was not committed is forgotten.
  virtual void Begin(const OptimizerStep& step) = 0;

  // Computes `next` and the new slots from `current` and the slots. Called once for each element of
  // a step; several threads may call it at once with pieces that do not overlap. Returns the index
  // in the vector of the piece's first element with a new slot that is NaN or infinite, if there is
  // one. It does not check `next`. The thread calls EndStreams() (vector_copy.h) after its last
  // piece.
  virtual absl::optional<uint64_t> Apply(const OptimizerPiece& piece) = 0;

  // The new slots of the step under way, in the order of slots(). An element is valid after
  // Apply(). The spans are valid until the next Commit().
  virtual std::vector<OptimizerSlot> new_slots() = 0;

  // Makes the new slots current. Every element has been applied.
  virtual void Commit() = 0;

  // The slots that the options need, in a fixed order, each as long as the vector. An optimizer of
  // the same config that gets these values and the number of steps continues with the same bits.
  // The spans are valid until the next Commit().
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
