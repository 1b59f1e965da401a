// The bits of floats, for loops that work on bits.

#ifndef SLUICE_COMMON_ENCODING_BYTES_FLOAT_BITS_H_
#define SLUICE_COMMON_ENCODING_BYTES_FLOAT_BITS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/tensor/vector_clones.h"

namespace sluice {

inline constexpr uint32_t kSignBit = uint32_t{1} << 31;
// The magnitude bits of infinity. Those of NaNs are greater, all others are less.
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

SLUICE_LOOP_BODY uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

SLUICE_LOOP_BODY float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The bits without the sign. A greater magnitude has greater bits.
SLUICE_LOOP_BODY uint32_t MagnitudeBits(float value) { return BitsOf(value) & ~kSignBit; }

// Returns the 16-bit number `i` of an array that need not be aligned.
SLUICE_LOOP_BODY uint16_t HalfAt(const char* halves, size_t i) {
  uint16_t half;
  std::memcpy(&half, halves + i * sizeof(half), sizeof(half));
  return half;
}

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_FLOAT_BITS_H_
