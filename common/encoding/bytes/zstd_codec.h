// zstd (RFC 8878), frame by frame.

#ifndef SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_
#define SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// A level for what has few repeats, as exponents have: gives each byte a code that is as short as
// it is frequent, and hardly looks for more. Several times as fast as level 1.
inline constexpr int kZstdByFrequency = 0;

// Writes a frame of `bytes` to the front of `to` and returns its length; none if it would be longer
// than `to`. `level` as zstd's, 1 to 19 (smallest), or kZstdByFrequency.
absl::optional<size_t> ZstdCompress(absl::string_view bytes, int level, absl::Span<char> to);

// How many bytes the one frame that `frame` is decompresses to, as it says; none if it is no such
// frame, or does not say.
absl::optional<uint64_t> ZstdSize(absl::string_view frame);

// Whether `frame` decompresses to exactly `to.size()` bytes, which are then in `to`. Takes no
// memory beyond that, whatever `frame` is.
bool ZstdDecompress(absl::string_view frame, absl::Span<char> to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_ZSTD_CODEC_H_
