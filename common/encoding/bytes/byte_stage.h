// The second and third step of an encoding: byte layout and compressor. codec.h calls this.

#ifndef SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_
#define SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// The two steps, and the width of the values that the transform made.
struct ByteStage {
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  size_t width = 1;  // of one value, in bytes

  // Whether the bytes are split into planes. Values of 1 byte have only one plane.
  bool splits() const { return byte_layout != ByteLayout::kPlain && (width == 2 || width == 4); }
  // Whether values whose bytes are all 0 may be left out before the split.
  bool leaves_out() const { return byte_layout == ByteLayout::kNonzeroPlanes && splits(); }
  bool compresses() const { return compressor != Compressor::kNone; }
  // Whether the payload is the same as the transform's bytes.
  bool plain() const { return !splits() && !compresses(); }
};

// Memory that is not set to zero first, since its owner writes all of it before reading it.
struct Buffer {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;

  absl::string_view view() const { return absl::string_view(bytes.get(), size); }
};

Buffer MakeBuffer(size_t size);

// Returns the payload for `bytes`. If the stage splits(), `bytes` has whole values. Parts that the
// compressor hardly shrinks are stored as they are. With zstd at `level` 1, planes and the map
// before them use kZstdByFrequency, since planes have few repetitions.
Buffer PackBytes(absl::string_view bytes, const ByteStage& stage, int level);

// Reverses PackBytes(). Returns at most `most` bytes, or exactly `most` if the stage splits(). They
// lie in `payload` itself or in `room`, which has space for `most` bytes. Returns BAD_CHUNK if
// `payload`, which comes from the network, is not valid.
absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, char* room);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_
