// Writes and reads the messages that carry chunks of tensors, without copying the payload.
//
// PushGradientsRequest, InitializeParamsRequest and PullParamsResponse have their chunk in the same
// field. These functions write and read the bytes of these messages themselves: gRPC sends the
// payload from where it lies in memory, and the reader uses it where it was received. The bytes are
// exactly those of protobuf. If a message is valid protobuf but ordered differently from what
// generated code writes, the generated parser reads it. The gRPC code of server and worker calls
// these functions, from any thread.

#ifndef SLUICE_COMMON_WIRE_CHUNK_H_
#define SLUICE_COMMON_WIRE_CHUNK_H_

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"
#include "common/tensor/tensor_chunk.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Whether a chunk carries a checksum of its payload. The receiver checks it if it is there. An
// encoded chunk always has one.
enum class Checksums { kOff, kOn };

// Returns kOff if `target`, an address or a peer name of gRPC, is on this machine, otherwise kOn.
// Within one machine no network can change a byte, and checksums would cost a quarter of the speed.
Checksums ChecksumsFor(absl::string_view target);

// Returns a message whose chunk has `elements`; the first one is element `offset` of the vector.
// The message shares the elements' memory.
grpc::ByteBuffer EncodeChunk(uint64_t offset, const SharedFloats& elements, Checksums checksums);

// Returns a message with an encoded chunk. The message shares the payload's memory.
grpc::ByteBuffer EncodeChunk(const EncodedChunk& chunk);

// The most bytes in a message of a value that is sent in parts: as large as a chunk.
inline constexpr size_t kBytesOfPart = kChunkElements * sizeof(float);

// Returns a message that has these bytes, and nothing else, in its field of that number, 1 to 15.
// The message shares their memory, which `owner` keeps.
grpc::ByteBuffer EncodeBytes(uint32_t field, absl::string_view bytes,
                             std::shared_ptr<const void> owner);

// Cuts `elements` into messages of at most kChunkElements each, and calls write(message, count) for
// each one; `count` is the number of its elements. The first element is element `offset` of the
// vector. Stops when write() returns false.
template <typename Write>
void ForEachChunk(uint64_t offset, const SharedFloats& elements, Checksums checksums, Write write) {
  const uint64_t size = elements.values.size();
  for (uint64_t begin = 0; begin < size; begin += kChunkElements) {
    const uint64_t count = std::min(kChunkElements, size - begin);
    const grpc::ByteBuffer message =
        EncodeChunk(offset + begin, elements.Part(begin, count), checksums);
    if (!write(message, count)) return;
  }
}

// Returns a message without payload. It tells the receiver to read `count` elements from the
// sender's shared memory, starting at element `first` of that memory.
grpc::ByteBuffer EncodeSharedChunk(uint64_t offset, uint64_t first, uint64_t count);

// The sender's shared memory, as the receiver sees it; null if the sender shares none.
using SenderMemory = std::shared_ptr<const SharedMemoryView>;

// Returns the chunk of a `Message`, which is one of those above. The chunk shares the memory of
// `bytes`, or the sender's memory. Encoded elements are not decoded yet. Errors:
//   BAD_ARGUMENT   the bytes are not such a message, or the message has no chunk
//   BAD_CHUNK      the payload is not a whole number of elements, the elements are not in the
//                  sender's memory, or the description of the encoding is wrong
//   CORRUPT_CHUNK  the checksum is wrong
template <typename Message>
absl::StatusOr<TensorChunk> DecodeChunk(const grpc::ByteBuffer& bytes,
                                        const SenderMemory& memory = nullptr);

extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::PushGradientsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::InitializeParamsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::PullParamsResponse>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);

// For messages that have more beside their chunk. The first takes the payload of `message`, which
// generated code has read; its errors are those of DecodeChunk(). The second returns the bytes of
// both, one after the other. For protobuf they are one message with the fields of both, so a chunk
// can be added to another message that has its chunk in the same field.
absl::StatusOr<TensorChunk> TakeChunk(v1::TensorChunk* message,
                                      const SenderMemory& memory = nullptr);
grpc::ByteBuffer Joined(const grpc::ByteBuffer& message, const grpc::ByteBuffer& chunk);

// Encodes any other message with the generated code.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);
// Returns false if `bytes` are not a message of this type.
bool DecodeMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_CHUNK_H_
