// zstd (RFC 8878), frame by frame.

#ifndef SLUICE_COMMON_ZSTD_CODEC_H_
#define SLUICE_COMMON_ZSTD_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace sluice {

// Appends a frame of `bytes` to `to`, if it is at most `most` bytes long; false if it would not be,
// and `to` is as before. `level` as zstd's: 1 is fastest, 19 smallest.
bool ZstdCompress(absl::string_view bytes, int level, size_t most, std::string* to);

// How many bytes the one frame that `frame` is decompresses to, as it says; none if it is no such
// frame, or does not say.
absl::optional<uint64_t> ZstdSize(absl::string_view frame);

// Whether `frame` decompresses to exactly `to.size()` bytes, which are then in `to`. Takes no
// memory beyond that, whatever `frame` is.
bool ZstdDecompress(absl::string_view frame, absl::Span<char> to);

}  // namespace sluice

#endif  // SLUICE_COMMON_ZSTD_CODEC_H_
