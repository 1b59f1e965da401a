// Whether bytes are text.

#ifndef SLUICE_COMMON_BASE_UTF8_H_
#define SLUICE_COMMON_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace sluice {

// Whether `text` is well-formed UTF-8 (RFC 3629), as protobuf demands of each string: no byte is
// missing, no character is longer than it must be, and none is half of a pair of UTF-16.
bool IsUtf8(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_UTF8_H_
