#include "common/tensor/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

// Small enough to stay in the first-level cache while it is searched again.
constexpr size_t kBlock = 2048;

// The largest of the bits without signs. Magnitudes are in the order of their bits, infinity and
// NaN last.
SLUICE_VECTOR_CLONES
int32_t LargestBits(const UnalignedFloat* values, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

SLUICE_VECTOR_CLONES
void DropLarger(float bound, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = std::abs(values[i]) <= bound ? values[i] : 0;
}

SLUICE_VECTOR_CLONES
void AddSquares(const UnalignedFloat* values, size_t count, double* __restrict to) {
  constexpr size_t kLanes = 8;
  double sums[kLanes];
  std::copy_n(to, kLanes, sums);
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane].value;
      sums[lane] += value * value;
    }
  }
  std::copy_n(sums, kLanes, to);
}

}  // namespace

SLUICE_VECTOR_CLONES
void AddTo(FloatPiece addend, absl::Span<float> sum) {
  const UnalignedFloat* __restrict in = addend.data();
  float* __restrict out = sum.data();
  for (size_t i = 0; i < sum.size(); ++i) out[i] += in[i].value;
}

SLUICE_VECTOR_CLONES
void ScaleTo(FloatPiece from, float factor, absl::Span<float> to) {
  const UnalignedFloat* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = factor * in[i].value;
}

SLUICE_VECTOR_CLONES
void Scale(float factor, absl::Span<float> values) {
  float* const out = values.data();
  for (size_t i = 0; i < values.size(); ++i) out[i] *= factor;
}

SLUICE_VECTOR_CLONES
void AddScaledTo(FloatPiece addend, float factor, absl::Span<float> sum) {
  const UnalignedFloat* __restrict in = addend.data();
  float* __restrict out = sum.data();
  for (size_t i = 0; i < sum.size(); ++i) out[i] += factor * in[i].value;
}

SLUICE_VECTOR_CLONES
void SubtractFrom(absl::Span<const float> from, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = in[i] - out[i];
}

SLUICE_VECTOR_CLONES
void DivideTo(absl::Span<const float> from, float divisor, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = in[i] / divisor;
}

void SquareSum::Add(FloatPiece values) {
  const size_t whole = values.size() - values.size() % kLanes;
  AddSquares(values.data(), whole, sums_);
  rest_size_ = values.size() - whole;
  std::copy_n(values.begin() + whole, rest_size_, rest_);
}

double SquareSum::Get() const {
  double sum = 0;
  for (const double lane : sums_) sum += lane;
  for (size_t i = 0; i < rest_size_; ++i) {
    const double value = rest_[i].value;
    sum += value * value;
  }
  return sum;
}

double SumOfSquares(FloatPiece values) {
  SquareSum sum;
  sum.Add(values);
  return sum.Get();
}

float LargestMagnitude(FloatPiece values) {
  const int32_t bits = LargestBits(values.data(), values.size());
  float largest;
  std::memcpy(&largest, &bits, sizeof(largest));
  return std::isfinite(largest) ? largest : std::numeric_limits<float>::infinity();
}

void CopyWithin(float bound, FloatPiece from, absl::Span<float> to) {
  for (size_t begin = 0; begin < to.size(); begin += kBlock) {
    const absl::Span<float> block = to.subspan(begin, kBlock);
    CopyTo(from.subspan(begin, block.size()), block);
    // The compiler must compare the copies, and not read `from` again.
    asm volatile("" ::: "memory");
    DropLarger(bound, block.data(), block.size());
  }
}

absl::optional<size_t> FindNotFinite(FloatPiece values) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, values.size());
    if (std::isfinite(LargestMagnitude(values.subspan(begin, end - begin)))) continue;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i].value)) return i;
    }
  }
  return absl::nullopt;
}

}  // namespace sluice
