// The second and third step of an encoding: byte layout and compressor.

#ifndef SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_
#define SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// What is done to a transform's bytes.
struct ByteStage {
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  size_t width = 1;  // of one value, in bytes

  // Into planes, since there are several.
  bool splits() const { return byte_layout != ByteLayout::kPlain && (width == 2 || width == 4); }
  // Whether zeros may be left out before.
  bool leaves_out() const { return byte_layout == ByteLayout::kNonzeroPlanes && splits(); }
  bool compresses() const { return compressor != Compressor::kNone; }
  // Whether a payload is the bytes.
  bool plain() const { return !splits() && !compresses(); }
};

// What is written as a whole before it is read: so nothing fills it with zeros.
struct Buffer {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;

  absl::string_view view() const { return absl::string_view(bytes.get(), size); }
};

Buffer MakeBuffer(size_t size);

// The payload that stands for `bytes`; of planes, a whole number of values. Parts in which the
// compressor finds little are stored. At zstd's level 1 planes, and the map before them, are
// compressed by the frequency of their bytes alone: there are few repeats in them.
Buffer PackBytes(absl::string_view bytes, const ByteStage& stage, int level);

// The bytes that `payload` stands for, at most `most` of them; of planes, exactly that many.
// BAD_CHUNK if it stands for none. They lie in `payload` itself or in `room`, which has room for
// `most`.
absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, char* room);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_BYTE_STAGE_H_
