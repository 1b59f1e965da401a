// Tells before a step whether it can make a number that is NaN or infinite.
//
// It keeps a bound for the magnitudes of the parameters and one for each of the optimizer's slots.
// Optimizer::After() computes the bounds after a step from those before it and from the bound of
// the gradient: a few additions for a whole vector. Such bounds only grow away from the truth, in
// some optimizers by a factor of a thousand in each step. Before they tell nothing any more, the
// step measures what it makes, while that is in the first-level cache, and the bounds are exact
// again.
//
// CheckedOptimizer owns one. The bounds never decide what a step makes, only how: whether it needs
// a try before it.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_BOUNDS_H_
#define SLUICE_SERVER_AGGREGATION_STEP_BOUNDS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// Externally synchronized, except for Measure().
class StepBounds {
 public:
  // Knows that the slots are 0, and nothing of the parameters.
  StepBounds();

  // Begins a step, which Optimizer::Begin() has begun. `sum` is the bound of the accumulated sum,
  // `statistics` that of the statistics that it makes. A step that was not committed is forgotten.
  void Begin(Optimizer& optimizer, double sum, float divisor, double statistics);

  // Whether the step's sum and statistics are certain to be finite.
  bool sum_is_sure() const { return sum_is_sure_; }
  // Whether all that the step makes is.
  bool is_sure() const { return is_sure_; }
  // Whether every element must be given to Measure().
  bool measures() const { return measures_; }

  // Measures the elements from `begin` on, which the step has made. Several threads may call it at
  // once.
  void Measure(uint64_t begin, absl::Span<const float> parameters,
               const std::vector<OptimizerSlot>& slots);

  // The step was made.
  void Commit();

  // The slots have been replaced.
  void ForgetSlots();

 private:
  // Bits of a float that is not negative. They are in the order of the numbers.
  using Bits = std::atomic<uint32_t>;

  Magnitudes before_;
  Magnitudes after_;
  bool sum_is_sure_ = false;
  bool is_sure_ = false;
  bool measures_ = false;
  Bits parameters_{0};  // measured
  std::array<Bits, kMostSlots> slots_{};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_BOUNDS_H_
