// The sum of the gradients of one step.
//
// One buffer, after TensorFlow's ConditionalAccumulator: the first gradient overwrites it, later
// ones add. Which gradients get here, and with what weight, is the policy's business.

#ifndef SLUICE_SERVER_ACCUMULATOR_H_
#define SLUICE_SERVER_ACCUMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/layout.h"
#include "server/float_buffer.h"
#include "server/staged_vector.h"

namespace sluice {

// What a gradient's elements are multiplied by before they are added.
struct GradientWeight {
  float parameters = 1;
  float statistics = 1;
};

// Externally synchronized.
class Accumulator {
 public:
  // Of vectors of that layout.
  explicit Accumulator(const Layout& layout) : runs_(layout.Runs()), sum_(layout.size()) {}

  // Adds a complete gradient of that layout.
  void Add(const StagedVector& gradient, const GradientWeight& weight = GradientWeight());

  // Gradients since the last Clear().
  uint32_t count() const { return count_; }

  // Their weighted sum; meaningless while count() is 0.
  absl::Span<const float> sum() const { return sum_.span(); }

  void Clear() { count_ = 0; }

 private:
  void AddChunk(const StagedChunk& chunk, const GradientWeight& weight);
  void AddPiece(absl::Span<const float> piece, float weight, absl::Span<float> to) const;

  const std::vector<KindRun> runs_;
  FloatBuffer sum_;
  uint32_t count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ACCUMULATOR_H_
