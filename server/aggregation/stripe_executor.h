// The arithmetic of a step on one stripe of the vector: it adds gradients to the stripe's sum, and
// carries out the orders of StepDirector. It owns the optimizer's slots. The sum lies in the
// parameters that the step will write, or in memory of its own.
//
// One thread at a time calls it, without the shard's mutex. Large vectors are cut into parts that
// several threads work on. The number of threads never changes a bit of the result.
//
// A step that would make a number that is not finite is not made: CheckedOptimizer says how that is
// known.

#ifndef SLUICE_SERVER_AGGREGATION_STRIPE_EXECUTOR_H_
#define SLUICE_SERVER_AGGREGATION_STRIPE_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/checked_optimizer.h"
#include "server/aggregation/parameter_sample.h"
#include "server/aggregation/step_orders.h"

namespace sluice {

// The stripe's part of the vectors from which and to which a step goes. `current` is finite: any
// parameters before the first step, then equal to what the latest step made.
struct StepVectors {
  absl::Span<const float> current;
  absl::Span<float> next;
  // May be null. It is called by kMake alone.
  WriteProgress progress;
  // If not null, kMake writes to it the checksum of what it made: the stripe's parameters and the
  // optimizer's slots.
  uint64_t* checksum = nullptr;
};

// Externally synchronized.
class StripeExecutor {
 public:
  // Of that stripe of the vector. `layout` is that of the whole vector. `optimizer` is valid and
  // fits it; `program` is as for CheckedOptimizer. `parallel` outlives the object.
  StripeExecutor(const Layout& layout, const OptimizerConfig& optimizer, const Stripes& stripes,
                 uint32_t stripe, Parallel& parallel,
                 std::unique_ptr<ProgramOptimizer> program = nullptr);

  // The sum of the step lies in StepVectors::next, since nobody needs it after the step. Without
  // effect once a gradient was added. Carry() calls it, too.
  void SumInto(absl::Span<float> next) {
    if (sum_.count() == 0) sum_.LieIn(next);
  }
  // Adds the stripe's part of a gradient.
  void Add(const Addend& gradient) { sum_.Add(gradient, parallel_); }
  // The same for the last gradient of a step, which is added in the step's own pass over memory. It
  // stays valid until Clear().
  void Keep(const Addend& gradient) { last_ = gradient; }
  // Replaces the sum by that of a journaled step.
  void Load(absl::Span<const float> sum) { sum_.Load(sum, parallel_); }

  // Carries out an order. The vectors are the same for all orders of a step. Until kMake or kCopy
  // has been carried out, `next` is undefined and the optimizer's state unchanged.
  StripeReport Carry(const StepOrder& order, const StepVectors& vectors);

  // Forgets the gradients.
  void Clear();

  // The sum of the gradients that Add() took. The span stays valid until the next Add() or Load(),
  // with SumInto() until an order changes `next`.
  absl::Span<const float> sum() const { return sum_.sum(); }

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_.slots(); }
  uint64_t optimizer_steps() const { return optimizer_.steps(); }
  // Call it also when the slots were written.
  void set_optimizer_steps(uint64_t steps) { optimizer_.set_steps(steps); }

 private:
  std::vector<uint32_t> Digest(absl::Span<const float> current) const;
  std::vector<double> MeasureSum();
  StripeReport Prepare(const StepOrder& order, const StepVectors& vectors);
  TrustRates OfStripe(const TrustRates& whole) const;
  absl::optional<uint64_t> InVector(absl::optional<uint64_t> element) const;

  const Stripes stripes_;
  const uint32_t stripe_;
  const Layout layout_;  // of the stripe
  const std::vector<KindRun> runs_;
  const std::vector<size_t> range_indexes_;  // in the vector's layout, of the stripe's ranges
  const ParameterSample sample_;
  Parallel& parallel_;
  Accumulator sum_;
  CheckedOptimizer optimizer_;
  absl::optional<Addend> last_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STRIPE_EXECUTOR_H_
