// Whole numbers as protobuf writes them: 7 bits a byte, the lowest first, and the highest bit set
// in all bytes but the last.

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
