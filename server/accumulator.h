// The sum of the gradients of one step.
//
// One buffer, after TensorFlow's ConditionalAccumulator: the first gradient overwrites it, later
// ones add, the divisor is the number that was summed. Which gradients get here is the policy's
// business.

#ifndef SLUICE_SERVER_ACCUMULATOR_H_
#define SLUICE_SERVER_ACCUMULATOR_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/float_buffer.h"
#include "server/staged_vector.h"

namespace sluice {

// Externally synchronized.
class Accumulator {
 public:
  // Of vectors of `size` elements.
  explicit Accumulator(uint64_t size) : sum_(size) {}

  // Adds a complete gradient of that size.
  void Add(const StagedVector& gradient);

  // Gradients since the last Clear().
  uint32_t count() const { return count_; }

  // Their sum; meaningless while count() is 0.
  absl::Span<const float> sum() const { return sum_.span(); }

  void Clear() { count_ = 0; }

 private:
  FloatBuffer sum_;
  uint32_t count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ACCUMULATOR_H_
