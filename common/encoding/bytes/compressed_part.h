// A compressed payload is a sequence of parts. A part has a length and then its bytes, which are
// either compressed (a frame) or stored as they are.

#ifndef SLUICE_COMMON_ENCODING_BYTES_COMPRESSED_PART_H_
#define SLUICE_COMMON_ENCODING_BYTES_COMPRESSED_PART_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// How parts are compressed. Only zstd uses the level.
struct PartCompressor {
  Compressor compressor = Compressor::kNone;
  int level = 1;

  // Compresses `bytes`, writes the frame to the beginning of `to` and returns its length. Returns
  // nothing if the frame would be longer than `to`.
  absl::optional<size_t> Compress(absl::string_view bytes, absl::Span<char> to) const;
};

// The longest frame that is worth its time for decompression: it must save at least 5 %.
constexpr size_t WorthIt(size_t bytes) { return bytes - bytes / 20; }

// Bytes of the length before each part.
inline constexpr size_t kPartHead = 4;

// Writes a part to `to`, which has space for the length and all of `bytes`; returns the end of the
// part. The bytes are stored as they are if `compressor` is null or if compression saves too little
// (see WorthIt()). If they are to be stored, `bytes` may already lie at their place in `to`.
char* PutPart(absl::string_view bytes, const PartCompressor* compressor, char* to);

// One part of a payload, as TakePart() found it.
struct Part {
  absl::string_view stored;  // the part's bytes without the length
  bool is_frame = false;
  uint64_t size = 0;  // in bytes, after decompression
};

// Removes the next part from the front of `payload` and returns it. Its size after decompression is
// at most `most` bytes, or exactly `most` if `exact`. Returns BAD_CHUNK if there is no such part.
absl::StatusOr<Part> TakePart(Compressor compressor, uint64_t most, bool exact,
                              absl::string_view* payload);

// Returns the part's bytes after decompression. They lie in the payload if they were stored,
// otherwise in `room`, which has space for part.size bytes. Returns BAD_CHUNK if the frame is not
// valid.
absl::StatusOr<absl::string_view> Decompress(const Part& part, Compressor compressor, char* room);

// Returns BAD_CHUNK with the message "a compressed chunk" and `what`.
absl::Status BrokenParts(absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_COMPRESSED_PART_H_
