// The weighted sum of the gradients of one step. StripeExecutor owns it.
//
// It is one buffer, as in TensorFlow's ConditionalAccumulator: the first gradient overwrites it,
// and later gradients are added. The accumulator does not decide which gradients count.
//
// The buffer may be where the next parameters will be written: the optimizer reads each part of the
// sum before it writes that part. So a server needs no vector for the sum, unless a journal takes
// it after the step. The first gradient may even have arrived there; see ServerStripe::Begin().
//
// The last gradient of a step need not be added to the buffer. SumWith() adds it block by block on
// the way to the optimizer, which saves one pass over memory, or two if it is the only gradient.
// Both ways make the same additions in the same order.

#ifndef SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_
#define SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

// How a gradient counts in the sum: factors for its elements, and what it adds to the divisor of a
// mean.
struct GradientWeight {
  float parameters = 1;  // factor of parameters, and of rows of tables
  float statistics = 1;  // factor of statistics
  float share = 1;       // added to the divisor: 1, or the number of samples
};

// A complete, sealed gradient with the accumulator's layout, and its weight.
struct Addend {
  const StagedVector* gradient = nullptr;
  GradientWeight weight;
};

// Externally synchronized. Several threads may call SumWith() for disjoint ranges at once.
class Accumulator {
 public:
  explicit Accumulator(const Layout& layout) : runs_(layout.Runs()), size_(layout.size()) {}

  // The sum lies in `memory` until Clear(). Only while count() is 0. Without it, the sum lies in
  // memory of the accumulator's own, which is allocated when it is first needed.
  void LieIn(absl::Span<float> memory) { sum_ = memory; }

  void Add(const Addend& addend, Parallel& parallel);

  // Replaces the sum by `sum`, which was read from the journal.
  void Load(absl::Span<const float> sum, Parallel& parallel);

  // How many gradients were added since Clear().
  uint32_t count() const { return count_; }

  // Their weighted sum. Undefined while count() is 0, and once the memory of LieIn() was written.
  absl::Span<const float> sum() const { return sum_; }

  // No element of the sum is larger in magnitude, except for rounding; with `last`, of the sum that
  // SumWith() writes.
  double bound() const { return count_ == 0 ? 0 : bound_; }
  double BoundWith(const Addend& last) const;

  // Writes elements [begin, begin + to.size()) of the sum to `to`; with `last`, of the sum plus it;
  // 0 if there is neither.
  void SumWith(const absl::optional<Addend>& last, uint64_t begin, absl::Span<float> to) const;

  void Clear() {
    count_ = 0;
    sum_ = {};
  }

 private:
  void AddPart(const Addend& addend, uint64_t begin, uint64_t end);
  // Adds elements [begin, begin + to.size()) of the addend to `to`. If nothing was added yet, it
  // overwrites `to`.
  void AddOnto(const Addend& addend, uint64_t begin, absl::Span<float> to) const;

  // Before the first gradient.
  void TakeMemory();

  const std::vector<KindRun> runs_;
  const uint64_t size_;
  FloatBuffer own_;
  absl::Span<float> sum_;  // empty before the first gradient, unless LieIn() was called
  uint32_t count_ = 0;
  double bound_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_ACCUMULATOR_H_
