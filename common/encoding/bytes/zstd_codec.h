// Compresses and decompresses single zstd frames (RFC 8878). Any thread may call these functions.

#ifndef SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_
#define SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// A level for bytes with few repetitions, such as exponents. It gives frequent bytes short codes
// and hardly looks for repetitions. It is several times as fast as level 1.
inline constexpr int kZstdByFrequency = 0;

// Compresses `bytes`, writes the frame to the beginning of `to` and returns its length. Returns
// nothing if the frame would be longer than `to`. `level` is 1 (fastest) to 19 (smallest frame), or
// kZstdByFrequency.
absl::optional<size_t> ZstdCompress(absl::string_view bytes, int level, absl::Span<char> to);

// Returns the decompressed size that `frame` states. Returns nothing if it is not exactly one
// frame, or does not state its size.
absl::optional<uint64_t> ZstdSize(absl::string_view frame);

// Decompresses `frame` to `to`. Returns false if the frame is not valid, or does not have exactly
// to.size() bytes. Allocates no memory for the result, whatever the frame says.
bool ZstdDecompress(absl::string_view frame, absl::Span<char> to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_
