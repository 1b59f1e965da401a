// Numbers in files and payloads, whatever the machine's order of bytes.

#ifndef SLUICE_COMMON_BASE_LITTLE_ENDIAN_H_
#define SLUICE_COMMON_BASE_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// Writes as many bytes as `Number`, an unsigned one, has.
template <typename Number>
void PutLittleEndian(Number value, char* to) {
  for (size_t i = 0; i < sizeof(value); ++i) to[i] = static_cast<char>(value >> (8 * i));
}

// Of the first bytes, as many as it has.
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
