// Loops over floats that do not belong to an optimizer. All except the sums of squares are
// elementwise, so splitting a span never changes a bit.

#ifndef SLUICE_COMMON_TENSOR_VECTOR_MATH_H_
#define SLUICE_COMMON_TENSOR_VECTOR_MATH_H_

#include <cstddef>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// sum[i] += addend[i]. In this file, all spans have the same size and do not overlap.
void AddTo(FloatPiece addend, absl::Span<float> sum);

// to[i] = factor · from[i].
void ScaleTo(FloatPiece from, float factor, absl::Span<float> to);

// values[i] *= factor.
void Scale(float factor, absl::Span<float> values);

// sum[i] += factor · addend[i].
void AddScaledTo(FloatPiece addend, float factor, absl::Span<float> sum);

// to[i] = from[i] − to[i].
void SubtractFrom(absl::Span<const float> from, absl::Span<float> to);

// to[i] = from[i] / divisor.
void DivideTo(absl::Span<const float> from, float divisor, absl::Span<float> to);

// A sum of squares, in double precision. The order of the additions depends on the number of values
// alone, not on the cut into pieces.
class SquareSum {
 public:
  // The size of every piece but the last is a multiple of 8.
  void Add(FloatPiece values);
  double Get() const;

 private:
  static constexpr size_t kLanes = 8;

  double sums_[kLanes] = {};  // independent, so that the compiler makes vector code of them
  UnalignedFloat rest_[kLanes];
  size_t rest_size_ = 0;  // of the last piece
};

// The same, of one piece.
double SumOfSquares(FloatPiece values);

// The largest magnitude (absolute value): infinity if there is a NaN, 0 if there are no values.
float LargestMagnitude(FloatPiece values);

// to[i] = from[i], or 0 where that is NaN or of a larger magnitude than `bound`. What it writes is
// within the bound even if another process writes `from` meanwhile.
void CopyWithin(float bound, FloatPiece from, absl::Span<float> to);

// The index of the first NaN or infinity; absent if there is none.
absl::optional<size_t> FindNotFinite(FloatPiece values);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_VECTOR_MATH_H_
