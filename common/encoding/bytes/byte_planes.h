// Values taken apart into planes of bytes, and put together again.

#ifndef SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_
#define SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace sluice {

inline constexpr size_t kMostPlanes = 4;

// Plane `i` has byte `i` of each value, the least significant first.
using Planes = std::array<absl::string_view, kMostPlanes>;

// Where each plane is written.
using PlaneTargets = std::array<char*, kMostPlanes>;

// Of `count` values of 2 or 4 bytes; planes of values of 1 are they themselves.
void SplitPlanes(const char* values, size_t count, size_t width, const PlaneTargets& planes);

// Of values of 2 or 4 bytes, as many as the first plane has.
void JoinPlanes(const Planes& planes, size_t width, char* values);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_BYTE_PLANES_H_
