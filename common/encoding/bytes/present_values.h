// Zeros left out: a bit for each value, whether it is there, and those that are.

#ifndef SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_
#define SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

// Values are of 2 or 4 bytes, and a zero is one whose bits are all 0, so −0.0 is none. Value `i` is
// bit `i` mod 8 of the map's byte `i` / 8.
constexpr size_t MapSize(size_t values) { return (values + 7) / 8; }

// Whether so many are zero, by some from all over them, that it is worth a map.
bool ManyZeros(absl::string_view values, size_t width);

// Writes MapSize() bytes to `map`, bits after the last value as 0, and the values that are not zero
// to `present`, which has room for all; returns how many.
size_t TakePresent(absl::string_view values, size_t width, char* map, char* present);

// Of `values` values.
size_t CountPresent(absl::string_view map, size_t values);

// Writes `values` values: those that are there from `present`, which holds CountPresent() of them.
void PlacePresent(absl::string_view map, absl::string_view present, size_t values, size_t width,
                  char* to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_PRESENT_VALUES_H_
