// Bytes of which few are frequent, as 4 bits each: PDICT of Zukowski, Héman, Nes and Boncz (2006),
// "Super-Scalar RAM-CPU Cache Compression", with a dictionary of 15. Of a normal distribution's
// floats it makes the plane of the exponents half as long, as fast as memory is read.

#ifndef SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_
#define SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// Writes a frame of `bytes`, fewer than 2^32, to the front of `to` and returns its length; none if
// it would be longer than `to`.
absl::optional<size_t> PdictCompress(absl::string_view bytes, absl::Span<char> to);

// How many bytes `frame` decompresses to, as it says; none if it cannot be a frame of so many.
absl::optional<uint64_t> PdictSize(absl::string_view frame);

// Whether `frame` decompresses to exactly `to.size()` bytes, which are then in `to`.
bool PdictDecompress(absl::string_view frame, absl::Span<char> to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_
