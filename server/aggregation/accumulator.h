// The sum of the gradients of one step.
//
// One buffer, after TensorFlow's ConditionalAccumulator: the first gradient overwrites it, later
// ones add. Which gradients get here, and with what weight, is the policy's business.
//
// The last gradient of a step need not be added to the buffer: SumWith() adds it on the way to the
// optimizer, block by block, which spares a pass over memory, or, where it is the only one, two.
// Either way the same additions are made in the same order.

#ifndef SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_
#define SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

// What a gradient's elements are multiplied by before they are added.
struct GradientWeight {
  float parameters = 1;
  float statistics = 1;
};

// A complete, sealed gradient of the accumulator's layout, and its weight.
struct Addend {
  const StagedVector* gradient = nullptr;
  GradientWeight weight;
};

// Externally synchronized; SumWith() of disjoint ranges may be called at once.
class Accumulator {
 public:
  // Of vectors of that layout.
  explicit Accumulator(const Layout& layout) : runs_(layout.Runs()), sum_(layout.size()) {}

  void Add(const Addend& addend, Parallel& parallel);

  // Makes `sum` the sum of gradients that were added elsewhere.
  void Load(absl::Span<const float> sum, Parallel& parallel);

  // Gradients since the last Clear().
  uint32_t count() const { return count_; }

  // Their weighted sum; meaningless while count() is 0.
  absl::Span<const float> sum() const { return sum_.span(); }

  // Writes elements [begin, begin + to.size()) of the sum and `last` together to `to`.
  void SumWith(const Addend& last, uint64_t begin, absl::Span<float> to) const;

  void Clear() { count_ = 0; }

 private:
  void AddPart(const Addend& addend, uint64_t begin, uint64_t end);

  const std::vector<KindRun> runs_;
  FloatBuffer sum_;
  uint32_t count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_
