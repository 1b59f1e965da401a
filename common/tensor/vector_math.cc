#include "common/tensor/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

// Small enough to stay in the first-level cache while it is searched again.
constexpr size_t kBlock = 2048;

// Branch-free, so that the compiler makes vector code of it.
SLUICE_VECTOR_CLONES
bool HasNotFinite(const UnalignedFloat* values, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    found |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return found != 0;
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

SLUICE_VECTOR_CLONES
double SumOfSquares(FloatPiece values) {
  // Independent sums, so that the compiler makes vector code of them.
  constexpr size_t kLanes = 8;
  double sums[kLanes] = {};
  const size_t whole = values.size() - values.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane].value;
      sums[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (const UnalignedFloat& rest : values.subspan(whole)) {
    const double value = rest.value;
    sum += value * value;
  }
  return sum;
}

absl::optional<size_t> FindNotFinite(FloatPiece values) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, values.size());
    if (!HasNotFinite(values.data() + begin, end - begin)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i].value)) return i;
    }
  }
  return absl::nullopt;
}

}  // namespace sluice
