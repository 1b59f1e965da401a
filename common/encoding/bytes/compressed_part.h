// One part of a compressed payload: its length, and bytes that are compressed or stored.

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

// How parts are compressed. The level is zstd's.
struct PartCompressor {
  Compressor compressor = Compressor::kNone;
  int level = 1;

  // Writes a frame of `bytes` to the front of `to` and returns its length; none if it would be
  // longer than `to`.
  absl::optional<size_t> Compress(absl::string_view bytes, absl::Span<char> to) const;
};

// What saves less than a twentieth is not worth the time it takes to decompress.
constexpr size_t WorthIt(size_t bytes) { return bytes - bytes / 20; }

// What stands before each part.
inline constexpr size_t kPartHead = 4;

// Writes a part to `to`, which has room for its head and its bytes; returns the end of it. Stores
// it if it is not worth to be compressed, or null says so. Its bytes may lie there already, behind
// the head, if they are to be stored.
char* PutPart(absl::string_view bytes, const PartCompressor* compressor, char* to);

// Of a payload.
struct Part {
  absl::string_view stored;
  bool is_frame = false;
  uint64_t size = 0;  // bytes that it stands for
};

// Takes the next part off the front of `payload`; it stands for at most `most` bytes or, if
// `exact`, for so many. BAD_CHUNK if there is no such part.
absl::StatusOr<Part> TakePart(Compressor compressor, uint64_t most, bool exact,
                              absl::string_view* payload);

// The bytes that it stands for: those that are stored, or in `room`, which has room for them.
// BAD_CHUNK if its frame cannot be decompressed.
absl::StatusOr<absl::string_view> Decompress(const Part& part, Compressor compressor, char* room);

// BAD_CHUNK, of a compressed chunk that `what`.
absl::Status BrokenParts(absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_COMPRESSED_PART_H_
