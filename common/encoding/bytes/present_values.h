// Leaves zeros out: a map has one bit for each value, and only values that are not zero follow.

#ifndef SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_
#define SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

// Values have 2 or 4 bytes. A zero is a value whose bits are all 0, so −0.0 does not count. The bit
// of value `i` is bit `i` mod 8 of the map's byte `i` / 8. Returns the map's size in bytes.
constexpr size_t MapSize(size_t values) { return (values + 7) / 8; }

// Returns whether enough values are zero to make a map worth its bytes. Looks only at a sample.
bool ManyZeros(absl::string_view values, size_t width);

// Writes the map to `map`, with 0 for the bits after the last value, and the values that are not
// zero to `present`, which has space for all values. Returns how many are not zero.
size_t TakePresent(absl::string_view values, size_t width, char* map, char* present);

// Returns how many of `values` values the map says are not zero.
size_t CountPresent(absl::string_view map, size_t values);

// Writes `values` values to `to`: zeros, and those from `present`, which has CountPresent() values.
void PlacePresent(absl::string_view map, absl::string_view present, size_t values, size_t width,
                  char* to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_
