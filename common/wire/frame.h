// What precedes a chunk's payload in its message, written and read by hand.

#ifndef SLUICE_COMMON_WIRE_FRAME_H_
#define SLUICE_COMMON_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

// All of a message but the payload, of so many bytes; `chunk` has all of the chunk but that.
std::string FramePrefix(const v1::TensorChunk& chunk, size_t payload_bytes);

// Where a chunk's payload lies in its message.
struct Frame {
  uint64_t offset = 0;  // of the chunk, in elements
  absl::optional<uint64_t> checksum;
  size_t begin = 0;  // of the payload, in bytes of the message
  size_t payload_bytes = 0;
};

// Bytes that ReadFrame() needs of a message, at most.
inline constexpr size_t kMostFramePrefix = 42;

// Of a message in the form that FramePrefix() and generated code give it, `prefix` being its first
// bytes. None if it has another form, be it legal or not.
absl::optional<Frame> ReadFrame(absl::string_view prefix, size_t message_bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_FRAME_H_
