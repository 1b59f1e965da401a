// float32, float16 and bfloat16.
#include <algorithm>
#include <cstring>
#include <memory>

#include "common/encoding/bytes/float_bits.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/encoding/transforms/fixed_size_transform.h"
#include "common/tensor/fetch_ahead.h"
#include "common/tensor/vector_clones.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace sluice {
namespace {

using To = bool (*)(const float* values, size_t count, char* bytes);
using From = void (*)(const char* bytes, size_t count, float* values);

// Loops store 32-bit numbers in a block on the stack and narrow them in a second loop, because
// compilers use narrower vectors for a loop that has narrow numbers in it.
constexpr size_t kBlock = 512;

// The functions below compare signed numbers, since every vector unit can do that, and have no
// branches.
SLUICE_LOOP_BODY uint32_t Choose(bool first, uint32_t a, uint32_t b) { return first ? a : b; }

SLUICE_LOOP_BODY bool Less(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a) < static_cast<int32_t>(b);
}

// Rounds to the nearest, ties to even. A value that is too large becomes the largest float16.
SLUICE_LOOP_BODY uint32_t ToFloat16(float value) {
  constexpr uint32_t kLargest = 0x477fe000u;         // 65504
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  constexpr uint32_t kRebias = 112u << 23;           // of the exponents
  uint32_t magnitude = MagnitudeBits(value);
  magnitude = Choose(Less(kLargest, magnitude), kLargest, magnitude);
  const uint32_t normal = (magnitude - kRebias + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  // The last bit of a float near 0.5 is worth 2^-24, like that of a subnormal float16.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t half = Choose(Less(magnitude, kSmallestNormal), subnormal, normal);
  return (BitsOf(value) >> 16 & 0x8000u) | half;
}

SLUICE_LOOP_BODY float FromFloat16(uint32_t half) {
  constexpr uint32_t kRebias = 112u << 23;
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  const uint32_t normal = magnitude + kRebias;
  const uint32_t subnormal = BitsOf(FloatOf(normal + (1u << 23)) - FloatOf(113u << 23));
  const uint32_t special = normal + kRebias;  // infinity and NaN
  uint32_t bits = Choose(Less(magnitude, 1u << 23), subnormal, normal);
  bits = Choose(Less(magnitude, 31u << 23), bits, special);
  return FloatOf((half & 0x8000u) << 16 | bits);
}

SLUICE_LOOP_BODY uint32_t ToBfloat16(float value) {
  constexpr uint32_t kLargest = 0x7f7f0000u;
  uint32_t magnitude = MagnitudeBits(value);
  magnitude = Choose(Less(kLargest, magnitude), kLargest, magnitude);
  return ((BitsOf(value) & kSignBit) | (magnitude + 0x7fffu + (magnitude >> 16 & 1))) >> 16;
}

// Returns whether all values are finite.
template <uint32_t (*kConvert)(float)>
SLUICE_LOOP_BODY bool ToHalves(const float* __restrict values, size_t count,
                               char* __restrict bytes) {
  uint32_t block[kBlock];
  int32_t most = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const float* const from = values + begin;
    FetchAhead(from + size, std::min(kBlock, count - begin - size) * sizeof(float));
    for (size_t i = 0; i < size; ++i) {
      most = std::max(most, static_cast<int32_t>(MagnitudeBits(from[i])));
      block[i] = kConvert(from[i]);
    }
    for (size_t i = 0; i < size; ++i) {
      const auto half = static_cast<uint16_t>(block[i]);
      std::memcpy(bytes + (begin + i) * sizeof(half), &half, sizeof(half));
    }
  }
  return most < static_cast<int32_t>(kInfinityBits);
}

SLUICE_VECTOR_CLONES
bool ToFloat16s(const float* values, size_t count, char* bytes) {
  return ToHalves<ToFloat16>(values, count, bytes);
}
SLUICE_VECTOR_CLONES
void FromFloat16sByBits(const char* __restrict bytes, size_t count, float* __restrict values) {
  uint32_t block[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    for (size_t i = 0; i < size; ++i) block[i] = HalfAt(bytes, begin + i);
    for (size_t i = 0; i < size; ++i) values[begin + i] = FromFloat16(block[i]);
  }
}

#ifdef __x86_64__
// One instruction replaces ten. The result differs only for signalling NaNs, which become quiet.
__attribute__((target("f16c"))) void FromFloat16sByF16c(const char* bytes, size_t count,
                                                        float* values) {
  constexpr size_t kVector = 8;
  const size_t whole = count - count % kVector;
  for (size_t i = 0; i < whole; i += kVector) {
    __m128i halves;
    std::memcpy(&halves, bytes + i * sizeof(uint16_t), sizeof(halves));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(halves));
  }
  FromFloat16sByBits(bytes + whole * sizeof(uint16_t), count - whole, values + whole);
}

// Every processor with AVX2 has F16C; clang's run time cannot test for F16C itself.
From BestFromFloat16s() {
  return __builtin_cpu_supports("avx2") ? FromFloat16sByF16c : FromFloat16sByBits;
}
#else
From BestFromFloat16s() { return FromFloat16sByBits; }
#endif

SLUICE_VECTOR_CLONES
bool ToBfloat16s(const float* values, size_t count, char* bytes) {
  return ToHalves<ToBfloat16>(values, count, bytes);
}
SLUICE_VECTOR_CLONES
void FromBfloat16s(const char* __restrict bytes, size_t count, float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOf(uint32_t{HalfAt(bytes, i)} << 16);
}

SLUICE_VECTOR_CLONES
bool ToFloat32s(const float* __restrict values, size_t count, char* __restrict bytes) {
  int32_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    most = std::max(most, static_cast<int32_t>(MagnitudeBits(values[i])));
    std::memcpy(bytes + i * sizeof(float), values + i, sizeof(float));
  }
  return most < static_cast<int32_t>(kInfinityBits);
}
void FromFloat32s(const char* bytes, size_t count, float* values) {
  std::memcpy(values, bytes, count * sizeof(float));
}

// Encodes each value separately, in `width` bytes.
class FloatTransform final : public FixedSizeTransform {
 public:
  FloatTransform(size_t width, To to, From from) : width_(width), to_(to), from_(from) {}

  size_t width() const override { return width_; }
  bool by_value() const override { return true; }

 protected:
  uint64_t SizeOf(uint64_t count) const override { return count * width_; }

  bool EncodeTo(absl::Span<const float> values, const Encoding& /*encoding*/,
                const ChunkContext& /*context*/, char* bytes) const override {
    return to_(values.data(), values.size(), bytes);
  }

  absl::Status DecodeFrom(const char* bytes, absl::Span<float> values) const override {
    from_(bytes, values.size(), values.data());
    return absl::OkStatus();
  }

 private:
  const size_t width_;
  const To to_;
  const From from_;
};

}  // namespace

std::unique_ptr<const Transform> MakeFloat32Transform() {
  return std::make_unique<FloatTransform>(4, ToFloat32s, FromFloat32s);
}

std::unique_ptr<const Transform> MakeFloat16Transform() {
  return std::make_unique<FloatTransform>(2, ToFloat16s, BestFromFloat16s());
}

std::unique_ptr<const Transform> MakeBfloat16Transform() {
  return std::make_unique<FloatTransform>(2, ToBfloat16s, FromBfloat16s);
}

}  // namespace sluice
