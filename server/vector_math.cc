#include "server/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace sluice {
namespace {

// Small enough to stay in the first-level cache while it is searched again.
constexpr size_t kBlock = 2048;

// Branch-free, so that the compiler makes vector code of it.
bool HasNotFinite(const float* values, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    found |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return found != 0;
}

}  // namespace

void CopyTo(absl::Span<const float> from, absl::Span<float> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

void AddTo(absl::Span<const float> addend, absl::Span<float> sum) {
  const float* __restrict in = addend.data();
  float* __restrict out = sum.data();
  for (size_t i = 0; i < sum.size(); ++i) out[i] += in[i];
}

void ScaleTo(absl::Span<const float> from, float factor, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = factor * in[i];
}

void AddScaledTo(absl::Span<const float> addend, float factor, absl::Span<float> sum) {
  const float* __restrict in = addend.data();
  float* __restrict out = sum.data();
  for (size_t i = 0; i < sum.size(); ++i) out[i] += factor * in[i];
}

void DivideTo(absl::Span<const float> from, float divisor, absl::Span<float> to) {
  const float* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = in[i] / divisor;
}

double SumOfSquares(absl::Span<const float> values) {
  // Independent sums, so that the compiler makes vector code of them.
  constexpr size_t kLanes = 8;
  double sums[kLanes] = {};
  const size_t whole = values.size() - values.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (const double value : values.subspan(whole)) sum += value * value;
  return sum;
}

absl::optional<size_t> FindNotFinite(absl::Span<const float> values) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, values.size());
    if (!HasNotFinite(values.data() + begin, end - begin)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return absl::nullopt;
}

}  // namespace sluice
