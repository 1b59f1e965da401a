// The second and third step of an encoding: byte layout and compressor.

#ifndef SLUICE_COMMON_ENCODING_BYTE_STAGE_H_
#define SLUICE_COMMON_ENCODING_BYTE_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/encoding/encoding.h"

namespace sluice {

// What is done to a transform's bytes.
struct ByteStage {
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  size_t width = 1;  // of one value, in bytes
};

// The payload that stands for `bytes`; of planes, a whole number of values. Parts in which the
// compressor finds little are stored.
std::string PackBytes(std::string bytes, const ByteStage& stage, int level);

// The bytes that `payload` stands for, at most `most` of them; of planes, exactly that many.
// BAD_CHUNK if it stands for none. `unpacked` holds them if they are not the payload itself.
absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, std::string* unpacked);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTE_STAGE_H_
