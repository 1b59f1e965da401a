// The arithmetic of a step where one server holds the whole vector: a StepDirector, and a
// StripeExecutor for the only stripe.
//
// One thread at a time calls it, without the shard's mutex: the thread that Shard::Advance() runs
// on.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/step_director.h"
#include "server/aggregation/step_norms.h"
#include "server/aggregation/stripe_executor.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Externally synchronized.
class StepExecutor {
 public:
  // `optimizer` is valid and fits the layout. `parallel` outlives it.
  StepExecutor(const Layout& layout, const OptimizerConfig& optimizer, Parallel& parallel);

  // Accumulates a contribution, with the weight that the terms of its step give it.
  void Add(const Contribution& contribution, const StepTerms& terms);

  // Computes the next parameters from the current ones and the accumulated sum. `last`, if not
  // null, is one more contribution, which is added in the same pass over memory. The optimizer
  // updates PARAMETER ranges; clipping follows the formula of torch::nn::utils::clip_grad_norm_.
  // STATISTIC ranges become the mean of the pushed values. If nothing was accumulated, the next
  // parameters become a copy of the current ones.
  //
  // Returns nothing if the step was made. Otherwise returns the index of the first element whose
  // parameter, or whose state in the optimizer, would not be finite. The optimizer's state is then
  // unchanged, and the next parameters are undefined.
  //
  // The rules for stale gradients use the steps that this object made. terms() has what they
  // decided. The checksum is 0 if nothing was accumulated or the step was not made.
  absl::optional<uint64_t> Make(const StepTerms& terms, const Contribution* last,
                                const StepVectors& vectors);

  // See StepDirector.
  const StepTerms& terms() const { return director_.terms(); }
  const StepNorms& norms() const { return director_.norms(); }

  // Empties the sum. Call it after Make(), when the sum is not needed any more.
  void Clear();

  // The gradients accumulated since Clear(): their number, their samples, and their sum, which is
  // empty if there are none. The span stays valid until the next Add() or Load().
  uint32_t gradients() const { return director_.gradients(); }
  uint64_t samples() const { return director_.samples(); }
  absl::Span<const float> sum() const {
    return gradients() == 0 ? absl::Span<const float>() : stripe_.sum();
  }
  // Replaces them by those of a journaled step.
  void Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum);

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return stripe_.slots(); }
  uint64_t optimizer_steps() const { return stripe_.optimizer_steps(); }
  // Call it also when the slots were written.
  void set_optimizer_steps(uint64_t steps);

 private:
  Addend Weighed(const Contribution& contribution, const StepTerms& terms);

  StepDirector director_;
  StripeExecutor stripe_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
