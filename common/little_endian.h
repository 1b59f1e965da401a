// Numbers in files, whatever the machine's order of bytes.

#ifndef SLUICE_COMMON_LITTLE_ENDIAN_H_
#define SLUICE_COMMON_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

inline std::string LittleEndian64(uint64_t value) {
  std::string bytes(sizeof(value), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

// Of the first 8 bytes.
inline uint64_t FromLittleEndian64(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace sluice

#endif  // SLUICE_COMMON_LITTLE_ENDIAN_H_
