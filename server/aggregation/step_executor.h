// The arithmetic of a step: it accumulates gradients, reduces the sum, clips it, and calls the
// optimizer. It owns all that holds numbers: the accumulator, the optimizer and the history.
//
// One thread at a time calls it, without the shard's mutex: the thread that Shard::Advance() runs
// on. Large vectors are cut into parts that several threads work on. The number of threads never
// changes a bit of the result.
//
// A step that would make a number that is not finite is not made, and Make() returns where;
// CheckedOptimizer says how that is known. GradientAges decides what stale gradients count.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/checked_optimizer.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/gradient_ages.h"
#include "server/aggregation/parameter_norms.h"
#include "server/aggregation/pending_push.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Externally synchronized.
class StepExecutor {
 public:
  // `optimizer` is valid and fits the layout. `parallel` outlives it.
  StepExecutor(const Layout& layout, const OptimizerConfig& optimizer, Parallel& parallel);

  // Accumulates a contribution, with the weight that the terms of its step give it.
  void Add(const Contribution& contribution, const StepTerms& terms);

  // Computes the parameters `next` from `current` and the accumulated sum. `last`, if not null, is
  // one more contribution, which is added in the same pass over memory. `current` is finite: any
  // parameters before the first step, then equal to what the latest step made. The optimizer
  // updates PARAMETER ranges; clipping follows the formula of torch::nn::utils::clip_grad_norm_.
  // STATISTIC ranges become the mean of the pushed values. If nothing was accumulated, `next`
  // becomes a copy of `current`.
  //
  // Returns nothing if the step was made. Otherwise returns the index of the first element whose
  // parameter, or whose state in the optimizer, would not be finite. The optimizer's state is then
  // unchanged, and `next` is undefined. `progress` is not called after such an element was found.
  //
  // The rules for stale gradients use the steps that this object made. terms() has what they
  // decided.
  //
  // `checksum`, if not null, gets the checksum of what was made: the parameters and the optimizer's
  // slots. It is 0 if nothing was accumulated or the step was not made.
  absl::optional<uint64_t> Make(const StepTerms& terms, const Contribution* last,
                                absl::Span<const float> current, absl::Span<float> next,
                                const WriteProgress& progress = nullptr,
                                uint64_t* checksum = nullptr);

  // The terms of the step that Make() made last, complete: a step that is made again with them has
  // the same bits.
  const StepTerms& terms() const { return terms_; }

  // How that step changed the size of the parameters.
  const StepNorms& norms() const { return norms_.latest(); }

  // Empties the sum. Call it after Make(), when the sum is not needed any more.
  void Clear();

  // The gradients accumulated since Clear(): their number, their samples, and their sum, which is
  // empty if there are none. The span stays valid until the next Add() or Load().
  uint32_t gradients() const { return count_; }
  uint64_t samples() const { return samples_; }
  absl::Span<const float> sum() const {
    return count_ == 0 ? absl::Span<const float>() : accumulator_.sum();
  }
  // Replaces them by those of a journaled step.
  void Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum);

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_.slots(); }
  uint64_t optimizer_steps() const { return optimizer_.steps(); }
  // Call it also when the slots were written.
  void set_optimizer_steps(uint64_t steps) {
    optimizer_.set_steps(steps);
    if (steps > 0) ages_.NoteRestored();
  }

 private:
  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  // Counts a contribution and returns it with its weight.
  Addend Count(const Contribution& contribution, const StepTerms& terms);
  // Make(), except that it does not keep the history and the norms.
  absl::optional<uint64_t> MakeStep(const StepTerms& terms, const Contribution* last,
                                    absl::Span<const float> current, absl::Span<float> next,
                                    const WriteProgress& progress, uint64_t* checksum);
  Divisors DivisorsOf(Reduction reduction) const;
  float Clipped(float divisor, const absl::optional<double>& clip_norm) const;
  double Norm() const;

  const std::vector<KindRun> runs_;
  Parallel& parallel_;
  Accumulator accumulator_;
  CheckedOptimizer optimizer_;
  GradientAges ages_;
  ParameterNorms norms_;
  StepTerms terms_;
  uint32_t count_ = 0;    // contributions to the step
  uint64_t samples_ = 0;  // of these contributions
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
