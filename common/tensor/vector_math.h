// Loops over floats that do not belong to an optimizer. All except SumOfSquares() are elementwise,
// so splitting a span never changes a bit.

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

// sum[i] += factor · addend[i].
void AddScaledTo(FloatPiece addend, float factor, absl::Span<float> sum);

// to[i] = from[i] − to[i].
void SubtractFrom(absl::Span<const float> from, absl::Span<float> to);

// to[i] = from[i] / divisor.
void DivideTo(absl::Span<const float> from, float divisor, absl::Span<float> to);

// The sum of the squares, in double precision and always in the same order.
double SumOfSquares(FloatPiece values);

// The index of the first NaN or infinity; absent if there is none.
absl::optional<size_t> FindNotFinite(FloatPiece values);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_VECTOR_MATH_H_
