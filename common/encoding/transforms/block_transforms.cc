// int8 and sign: a few bits per value, and one scale per block of values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/bytes/float_bits.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/encoding/transforms/fixed_size_transform.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

float ScaleAt(const char* bytes, size_t block) {
  float scale;
  std::memcpy(&scale, bytes + block * sizeof(scale), sizeof(scale));
  return scale;
}

void PutScale(float scale, size_t block, char* bytes) {
  std::memcpy(bytes + block * sizeof(scale), &scale, sizeof(scale));
}

// The scales of all blocks come first, then the blocks. The last block may be short.
class BlockTransform : public FixedSizeTransform {
 protected:
  BlockTransform(size_t block, size_t values_per_byte)
      : block_(block), values_per_byte_(values_per_byte) {}

  uint64_t SizeOf(uint64_t count) const final {
    return Blocks(count) * sizeof(float) + (count + values_per_byte_ - 1) / values_per_byte_;
  }

  bool EncodeTo(absl::Span<const float> values, const Encoding& encoding,
                const ChunkContext& context, char* bytes) const final {
    char* to = bytes + Blocks(values.size()) * sizeof(float);
    for (size_t begin = 0; begin < values.size(); begin += block_) {
      const size_t count = std::min(block_, values.size() - begin);
      const float* from = values.data() + begin;
      const uint64_t seed = context.seed + begin;
      const float scale = EncodeBlock(from, count, encoding, seed, to + begin / values_per_byte_);
      if (!std::isfinite(scale)) return false;
      PutScale(scale, begin / block_, bytes);
    }
    return true;
  }

  absl::Status DecodeFrom(const char* bytes, absl::Span<float> values) const final {
    const char* from = bytes + Blocks(values.size()) * sizeof(float);
    for (size_t begin = 0; begin < values.size(); begin += block_) {
      const float scale = ScaleAt(bytes, begin / block_);
      if (!std::isfinite(scale)) {
        return MakeError(Reason::kBadChunk, absl::StrCat("the scale of block ", begin / block_,
                                                         " of an encoded chunk is ", scale,
                                                         ", expected a finite number"));
      }
      DecodeBlock(from + begin / values_per_byte_, scale, std::min(block_, values.size() - begin),
                  values.data() + begin);
    }
    return absl::OkStatus();
  }

  // Returns the block's scale, which is not finite if one of the values is not.
  virtual float EncodeBlock(const float* values, size_t count, const Encoding& encoding,
                            uint64_t seed, char* bytes) const = 0;
  virtual void DecodeBlock(const char* bytes, float scale, size_t count, float* values) const = 0;

 private:
  uint64_t Blocks(uint64_t count) const { return (count + block_ - 1) / block_; }

  const size_t block_;
  const size_t values_per_byte_;
};

// ---- int8: value = scale · byte, a byte being −127 to 127 (Dettmers 2016 surveys the kind) ----

constexpr float kMostInt8 = 127;
// Below this, 1 / scale is too large for a float.
constexpr float kLeastMagnitude = 1e-36f;
// Above this, scale · 127 is too large for one.
constexpr float kMostScale = 0x810203p98f;

SLUICE_VECTOR_CLONES
float MagnitudeOf(const float* values, size_t count) {
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, MagnitudeBits(values[i]));
  return FloatOf(most);
}

// Returns the nearest integer, ties to even, in the low bits. A sum with 1.5 · 2^23 has no bits for
// fractions, so the addition rounds.
SLUICE_LOOP_BODY uint32_t Rounded(float value) {
  value = value > kMostInt8 ? kMostInt8 : value;
  value = value < -kMostInt8 ? -kMostInt8 : value;
  return BitsOf(value + 12582912.0f);
}

// A separate loop, because compilers use narrower vectors for a loop that stores bytes.
SLUICE_LOOP_BODY void TakeLowBytes(const uint32_t* __restrict from, size_t count,
                                   int8_t* __restrict to) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<int8_t>(from[i] & 0xffu);
}

// At most kInt8Block values, as in QuantizeAtRandom().
SLUICE_VECTOR_CLONES
void Quantize(const float* __restrict values, float factor, size_t count, int8_t* __restrict to) {
  uint32_t rounded[kInt8Block];
  for (size_t i = 0; i < count; ++i) rounded[i] = Rounded(values[i] * factor);
  TakeLowBytes(rounded, count, to);
}

// A number in [−0.5, 0.5) for each seed: the finalizer of MurmurHash3 (Appleby).
SLUICE_LOOP_BODY float Dither(uint32_t seed) {
  seed ^= seed >> 16;
  seed *= 0x85ebca6bu;
  seed ^= seed >> 13;
  seed *= 0xc2b2ae35u;
  seed ^= seed >> 16;
  return static_cast<float>(static_cast<int32_t>(seed) >> 8) * 0x1p-24f;
}

SLUICE_VECTOR_CLONES
void QuantizeAtRandom(const float* __restrict values, float factor, uint32_t seed, size_t count,
                      int8_t* __restrict to) {
  uint32_t rounded[kInt8Block];
  const auto size = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < size; ++i) {
    rounded[i] = Rounded(values[i] * factor + Dither(seed + i));
  }
  TakeLowBytes(rounded, count, to);
}

SLUICE_VECTOR_CLONES
void Scale(const int8_t* __restrict from, float scale, size_t count, float* __restrict to) {
  for (size_t i = 0; i < count; ++i) to[i] = scale * static_cast<float>(from[i]);
}

class Int8 final : public BlockTransform {
 public:
  Int8() : BlockTransform(kInt8Block, 1) {}

 protected:
  float EncodeBlock(const float* values, size_t count, const Encoding& encoding, uint64_t seed,
                    char* bytes) const override {
    auto* const to = reinterpret_cast<int8_t*>(bytes);
    const float magnitude = MagnitudeOf(values, count);
    if (magnitude < kLeastMagnitude) {
      std::memset(to, 0, count);
      return 0;
    }
    if (!std::isfinite(magnitude)) return magnitude;
    const float factor = kMostInt8 / magnitude;
    if (encoding.stochastic) {
      QuantizeAtRandom(values, factor, static_cast<uint32_t>(seed ^ seed >> 32), count, to);
    } else {
      Quantize(values, factor, count, to);
    }
    return std::min(magnitude / kMostInt8, kMostScale);
  }

  void DecodeBlock(const char* bytes, float scale, size_t count, float* values) const override {
    Scale(reinterpret_cast<const int8_t*>(bytes), scale, count, values);
  }
};

// ---- sign: value = ± scale, the mean magnitude of the block (Karimireddy et al. 2019) ----

constexpr size_t kBits = 8;

// Uses 16 sums, so that every instruction set adds in the same order.
SLUICE_VECTOR_CLONES
float SumOfMagnitudes(const float* values, size_t count) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += std::fabs(values[i + lane]);
  }
  for (; i < count; ++i) sums[i % kLanes] += std::fabs(values[i]);
  float sum = 0;
  for (float lane : sums) sum += lane;
  return sum;
}

// Finite if the values are, even if their sum is too large for a float.
float MeanMagnitude(const float* values, size_t count) {
  const float sum = SumOfMagnitudes(values, count);
  if (std::isfinite(sum)) return sum / static_cast<float>(count);
  double wide = 0;
  for (size_t i = 0; i < count; ++i) wide += std::fabs(values[i]);
  return static_cast<float>(wide / static_cast<double>(count));
}

// Bit i of a byte is the sign of the byte's value i; 1 means negative.
SLUICE_VECTOR_CLONES
void TakeSigns(const float* __restrict values, size_t bytes, char* __restrict to) {
  for (size_t byte = 0; byte < bytes; ++byte) {
    uint32_t bits = 0;
    for (size_t i = 0; i < kBits; ++i) bits |= BitsOf(values[byte * kBits + i]) >> 31 << i;
    to[byte] = static_cast<char>(bits);
  }
}

SLUICE_VECTOR_CLONES
void GiveSigns(const char* __restrict from, float scale, size_t bytes, float* __restrict to) {
  const uint32_t magnitude = BitsOf(scale);
  for (size_t byte = 0; byte < bytes; ++byte) {
    const auto bits = static_cast<uint32_t>(static_cast<uint8_t>(from[byte]));
    for (size_t i = 0; i < kBits; ++i) {
      to[byte * kBits + i] = FloatOf(magnitude ^ ((bits >> i & 1) << 31));
    }
  }
}

class Sign final : public BlockTransform {
 public:
  Sign() : BlockTransform(kSignBlock, kBits) {}

 protected:
  float EncodeBlock(const float* values, size_t count, const Encoding& /*encoding*/,
                    uint64_t /*seed*/, char* bytes) const override {
    TakeSigns(values, count / kBits, bytes);
    if (const size_t rest = count % kBits; rest > 0) {
      float padded[kBits] = {};
      std::copy_n(values + count - rest, rest, padded);
      TakeSigns(padded, 1, bytes + count / kBits);
    }
    return MeanMagnitude(values, count);
  }

  void DecodeBlock(const char* bytes, float scale, size_t count, float* values) const override {
    GiveSigns(bytes, scale, count / kBits, values);
    if (const size_t rest = count % kBits; rest > 0) {
      float padded[kBits];
      GiveSigns(bytes + count / kBits, scale, 1, padded);
      std::copy_n(padded, rest, values + count - rest);
    }
  }
};

}  // namespace

std::unique_ptr<const Transform> MakeInt8Transform() { return std::make_unique<Int8>(); }

std::unique_ptr<const Transform> MakeSignTransform() { return std::make_unique<Sign>(); }

}  // namespace sluice
