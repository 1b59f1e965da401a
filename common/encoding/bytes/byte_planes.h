// Splits values into planes of bytes, and joins them again.

#ifndef SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_
#define SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace sluice {

inline constexpr size_t kMostPlanes = 4;

// Plane `i` has byte `i` of each value. Byte 0 is the least significant.
using Planes = std::array<absl::string_view, kMostPlanes>;

// The memory to which each plane is written.
using PlaneTargets = std::array<char*, kMostPlanes>;

// Splits `count` values into `width` planes of `count` bytes each. `width`, the bytes per value, is
// 2 or 4.
void SplitPlanes(const char* values, size_t count, size_t width, const PlaneTargets& planes);

// Joins `width` planes, 2 or 4, of the same length, and writes the values to `values`.
void JoinPlanes(const Planes& planes, size_t width, char* values);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_
