#include "common/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace sluice {
namespace {

// The least character that needs so many bytes.
constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};

// The bytes of the character that begins with `first`; 0 if none does.
size_t BytesAfter(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC0 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF8 ? 4 : 0;
}

bool IsCharacter(uint32_t value, size_t bytes) {
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value >= kLeast[bytes] && value <= 0x10FFFF && !surrogate;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const size_t bytes = BytesAfter(first);
    if (bytes == 0 || bytes > text.size()) return false;
    uint32_t value = bytes == 1 ? first : first & (0x7FU >> bytes);
    for (const char next : text.substr(1, bytes - 1)) {
      const auto byte = static_cast<unsigned char>(next);
      if ((byte & 0xC0U) != 0x80) return false;
      value = value << 6U | (byte & 0x3FU);
    }
    if (!IsCharacter(value, bytes)) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace sluice
