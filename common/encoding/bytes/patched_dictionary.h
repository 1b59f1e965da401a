// A compressor for bytes of which a few are frequent: each of the 15 most frequent bytes takes 4
// bits.
//
// This is PDICT of Zukowski, Héman, Nes and Boncz (2006), "Super-Scalar RAM-CPU Cache Compression".
// It halves the plane with the exponents of normally distributed floats, as fast as memory is read.

#ifndef SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_
#define SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// Compresses `bytes`, fewer than 2^32, writes the frame to the beginning of `to` and returns its
// length. Returns nothing if the frame would be longer than `to`.
absl::optional<size_t> PdictCompress(absl::string_view bytes, absl::Span<char> to);

// Returns the decompressed size that `frame` states, or nothing if a frame of this length cannot
// have that size.
absl::optional<uint64_t> PdictSize(absl::string_view frame);

// Decompresses `frame` to `to`. Returns false if the frame is not valid, or does not have exactly
// to.size() bytes.
bool PdictDecompress(absl::string_view frame, absl::Span<char> to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_PATCHED_DICTIONARY_H_
