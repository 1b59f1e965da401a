// A float's bits, for loops that work on them.

#ifndef SLUICE_COMMON_ENCODING_FLOAT_BITS_H_
#define SLUICE_COMMON_ENCODING_FLOAT_BITS_H_

#include <cstdint>
#include <cstring>

#include "common/vector_clones.h"

namespace sluice {

inline constexpr uint32_t kSignBit = uint32_t{1} << 31;

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

// Of the value without its sign: greater for greater values.
SLUICE_LOOP_BODY uint32_t MagnitudeBits(float value) { return BitsOf(value) & ~kSignBit; }

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_FLOAT_BITS_H_
