// The bytes of a message that stand before the chunk's payload. chunk.cc uses these functions.

#ifndef SLUICE_COMMON_WIRE_FRAME_H_
#define SLUICE_COMMON_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

// Returns all bytes of a message that stand before the payload. `chunk` has every field except the
// payload, which will have `payload_bytes` bytes.
std::string FramePrefix(const v1::TensorChunk& chunk, size_t payload_bytes);

// Where a chunk's payload lies in its message.
struct Frame {
  uint64_t offset = 0;  // of the chunk, in elements
  absl::optional<uint64_t> checksum;
  size_t begin = 0;  // of the payload, in bytes of the message
  size_t payload_bytes = 0;
};

// The longest prefix, in bytes, that ReadFrame() needs.
inline constexpr size_t kMostFramePrefix = 42;

// Reads the first bytes of a message of `message_bytes` bytes. `prefix` has kMostFramePrefix of
// them, or all if the message is shorter. Returns nothing if the fields are not in the order that
// FramePrefix() and generated code write: the message may still be valid protobuf.
absl::optional<Frame> ReadFrame(absl::string_view prefix, size_t message_bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_FRAME_H_
