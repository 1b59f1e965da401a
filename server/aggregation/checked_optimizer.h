// Applies the job's optimizer to the whole vector of parameters, on several threads, and only if
// every number that comes out is finite.
//
// A step that would make a parameter, a statistic or a number of the optimizer NaN or infinite is
// not made, and the optimizer's state, which a step updates in place, stays as it was. Bounds tell
// beforehand that nearly all steps are finite (StepBounds). Others are tried first: all numbers are
// made, checked and thrown away, block by block in the first-level cache. Without slots, new
// parameters are checked where they are made. LAMB's pass for norms is its try.
//
// StepExecutor owns one. Large vectors are cut into fixed parts that several threads work on, so
// the number of threads never changes a bit of the result.

#ifndef SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_
#define SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/step_bounds.h"
#include "server/optimizers/group_runs.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/trust_ratios.h"

namespace sluice {

// Called on the thread that makes the step, when elements [0, end) of the next parameters are
// written.
using WriteProgress = std::function<void(uint64_t end)>;

// The gradient of one step, and the vectors from which and to which the step goes.
struct VectorStep {
  absl::optional<Addend> last;   // one more gradient, which is not in the sum yet
  OptimizerStep optimizer;       // its number is set by CheckedOptimizer
  float statistics_divisor = 1;  // the mean of a pushed statistic is sum / statistics_divisor
  absl::Span<const float> current;
  absl::Span<float> next;
};

// Externally synchronized.
class CheckedOptimizer {
 public:
  // `config` is valid and fits the layout. `parallel` outlives it.
  CheckedOptimizer(const Layout& layout, const OptimizerConfig& config, Parallel& parallel);

  // Makes the next parameters of `step.current` and the sum. The optimizer updates PARAMETER
  // ranges; STATISTIC ranges become the mean of the pushed values. It may move `step.last` into
  // `sum`.
  //
  // Returns nothing if the step was made. Otherwise returns the index of the first element that
  // would not be finite; the optimizer's state is then unchanged, and `step.next` is undefined.
  // `progress`, if any, is not called after such an element was found.
  //
  // `checksum`, if not null, gets the checksum of what was made: the parameters and the slots.
  absl::optional<uint64_t> Make(VectorStep step, Accumulator& sum, const WriteProgress& progress,
                                uint64_t* checksum);

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_->slots(); }
  uint64_t steps() const { return steps_; }
  // Call it also when the slots were written.
  void set_steps(uint64_t steps) {
    steps_ = steps;
    bounds_.ForgetSlots();
  }

 private:
  enum class Pass { kTry, kMake };
  struct Making;

  // Notes the first element that would not be finite. Does nothing if none can be.
  void Foresee(Making& making);
  // Calls part(begin, end) for each part of the vector, on several threads.
  void ForEachPartOf(const Making& making, const WriteProgress& progress,
                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part);
  void TryPart(Making& making, uint64_t begin, uint64_t end);
  void MakePart(Making& making, uint64_t begin, uint64_t end);
  // Makes the elements from `begin` on, at most kPiece; LAMB's updates in place of parameters.
  void MakePiece(Making& making, uint64_t begin, Pass pass, absl::Span<float> made);

  const std::vector<GroupRun> group_runs_;
  Parallel& parallel_;
  const std::unique_ptr<Optimizer> optimizer_;
  StepBounds bounds_;
  absl::optional<TrustRatios> trust_;  // only for LAMB: scales the optimizer's updates
  uint64_t steps_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_
