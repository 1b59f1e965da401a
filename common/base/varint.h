// Protobuf's varints: 7 bits in each byte, the lowest first. The highest bit is set in all bytes
// except the last.

#ifndef SLUICE_COMMON_BASE_VARINT_H_
#define SLUICE_COMMON_BASE_VARINT_H_

#include <cstdint>
#include <string>

namespace sluice {

inline void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_VARINT_H_
