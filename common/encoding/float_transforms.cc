// float32, float16 and bfloat16.
#include <cstring>

#include "common/encoding/builtin_transforms.h"
#include "common/encoding/fixed_size_transform.h"
#include "common/encoding/float_bits.h"
#include "common/vector_clones.h"

namespace sluice {
namespace {

// Rounds to the nearest, ties to even; what is too large becomes the largest. Branch-free, as all
// of these loops.
SLUICE_LOOP_BODY uint16_t ToFloat16(float value) {
  constexpr uint32_t kLargest = 0x477fe000u;         // 65504
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  constexpr uint32_t kRebias = 112u << 23;           // of the exponents
  const uint32_t bits = BitsOf(value);
  uint32_t magnitude = MagnitudeBits(value);
  magnitude = magnitude > kLargest ? kLargest : magnitude;
  const uint32_t normal = (magnitude - kRebias + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  // Beside 0.5 a unit in the last place is 2^-24, that of a subnormal float16.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t half = magnitude < kSmallestNormal ? subnormal : normal;
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | half);
}

SLUICE_LOOP_BODY float FromFloat16(uint16_t half) {
  constexpr uint32_t kRebias = 112u << 23;
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  const uint32_t normal = magnitude + kRebias;
  const uint32_t subnormal = BitsOf(FloatOf(normal + (1u << 23)) - FloatOf(113u << 23));
  const uint32_t special = normal + kRebias;  // infinity and NaN
  const uint32_t exponent = half & 0x7c00u;
  uint32_t bits = exponent == 0 ? subnormal : normal;
  bits = exponent == 0x7c00u ? special : bits;
  return FloatOf((static_cast<uint32_t>(half & 0x8000u) << 16) | bits);
}

SLUICE_LOOP_BODY uint16_t ToBfloat16(float value) {
  constexpr uint32_t kLargest = 0x7f7f0000u;
  const uint32_t bits = BitsOf(value);
  uint32_t magnitude = MagnitudeBits(value);
  magnitude = magnitude > kLargest ? kLargest : magnitude;
  return static_cast<uint16_t>(
      ((bits & kSignBit) | (magnitude + 0x7fffu + (magnitude >> 16 & 1))) >> 16);
}

SLUICE_LOOP_BODY float FromBfloat16(uint16_t half) {
  return FloatOf(static_cast<uint32_t>(half) << 16);
}

template <uint16_t (*kConvert)(float)>
SLUICE_LOOP_BODY void ToHalves(const float* __restrict values, size_t count,
                               char* __restrict bytes) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t half = kConvert(values[i]);
    std::memcpy(bytes + i * sizeof(half), &half, sizeof(half));
  }
}

template <float (*kConvert)(uint16_t)>
SLUICE_LOOP_BODY void FromHalves(const char* __restrict bytes, size_t count,
                                 float* __restrict values) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + i * sizeof(half), sizeof(half));
    values[i] = kConvert(half);
  }
}

SLUICE_VECTOR_CLONES
void ToFloat16s(const float* values, size_t count, char* bytes) {
  ToHalves<ToFloat16>(values, count, bytes);
}
SLUICE_VECTOR_CLONES
void FromFloat16s(const char* bytes, size_t count, float* values) {
  FromHalves<FromFloat16>(bytes, count, values);
}
SLUICE_VECTOR_CLONES
void ToBfloat16s(const float* values, size_t count, char* bytes) {
  ToHalves<ToBfloat16>(values, count, bytes);
}
SLUICE_VECTOR_CLONES
void FromBfloat16s(const char* bytes, size_t count, float* values) {
  FromHalves<FromBfloat16>(bytes, count, values);
}

void ToFloat32s(const float* values, size_t count, char* bytes) {
  std::memcpy(bytes, values, count * sizeof(float));
}
void FromFloat32s(const char* bytes, size_t count, float* values) {
  std::memcpy(values, bytes, count * sizeof(float));
}

using To = void (*)(const float* values, size_t count, char* bytes);
using From = void (*)(const char* bytes, size_t count, float* values);

// Each value on its own, in so many bytes.
class FloatTransform final : public FixedSizeTransform {
 public:
  FloatTransform(size_t width, To to, From from) : width_(width), to_(to), from_(from) {}

  size_t width() const override { return width_; }

 protected:
  uint64_t SizeOf(uint64_t count) const override { return count * width_; }

  void EncodeTo(absl::Span<const float> values, const Encoding& /*encoding*/,
                const ChunkContext& /*context*/, char* bytes) const override {
    to_(values.data(), values.size(), bytes);
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

const Transform& Float32Transform() {
  static const auto* const transform = new FloatTransform(4, ToFloat32s, FromFloat32s);
  return *transform;
}

const Transform& Float16Transform() {
  static const auto* const transform = new FloatTransform(2, ToFloat16s, FromFloat16s);
  return *transform;
}

const Transform& Bfloat16Transform() {
  static const auto* const transform = new FloatTransform(2, ToBfloat16s, FromBfloat16s);
  return *transform;
}

}  // namespace sluice
