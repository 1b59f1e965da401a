// Reads and writes little-endian numbers, whatever the machine's byte order.

#ifndef SLUICE_COMMON_BASE_LITTLE_ENDIAN_H_
#define SLUICE_COMMON_BASE_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// Writes sizeof(Number) bytes. `Number` is unsigned.
template <typename Number>
void PutLittleEndian(Number value, char* to) {
  for (size_t i = 0; i < sizeof(value); ++i) to[i] = static_cast<char>(value >> (8 * i));
}

// Reads a number from the first sizeof(Number) bytes, which must exist.
template <typename Number>
Number FromLittleEndian(absl::string_view bytes) {
  Number value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) {
    value |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

inline std::string LittleEndian64(uint64_t value) {
  std::string bytes(sizeof(value), '\0');
  PutLittleEndian(value, &bytes[0]);
  return bytes;
}

inline uint64_t FromLittleEndian64(absl::string_view bytes) {
  return FromLittleEndian<uint64_t>(bytes);
}

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_LITTLE_ENDIAN_H_
