// The streams of tensor chunks, written and read around their payload.
//
// PushGradientsRequest, InitializeParamsRequest and PullParamsResponse hold a chunk in the same
// field. Here their bytes are made and taken apart by hand, so that the payload is sent from where
// it lies and read from where it was received. They are exactly protobuf's: what is not in the form
// that generated code writes is left to the generated parser.

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

// Whether a chunk carries a checksum of its payload, which whoever receives it then checks. One
// that is encoded always does.
enum class Checksums { kOff, kOn };

// For what goes to or comes from `target`, as gRPC or an address names it: off if that is on this
// machine. Nothing is between the two then that could change a byte, and to check it would cost a
// quarter of the speed.
Checksums ChecksumsFor(absl::string_view target);

// A message whose chunk holds `elements`, which start at `offset` of the vector. Refers to them.
grpc::ByteBuffer EncodeChunk(uint64_t offset, const SharedFloats& elements, Checksums checksums);

// A message that holds an encoded chunk. Refers to its payload.
grpc::ByteBuffer EncodeChunk(const EncodedChunk& chunk);

// Cuts `elements`, which start at `offset` of the vector, into messages: calls
// write(message, count) for each, `count` being its elements, until that says false.
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

// A message whose chunk says that its `count` elements lie in the sender's shared memory, from
// `first` on.
grpc::ByteBuffer EncodeSharedChunk(uint64_t offset, uint64_t first, uint64_t count);

// A reader's end of the sender's shared memory; null if there is none.
using SenderMemory = std::shared_ptr<const SharedMemoryView>;

// The chunk in a `Message`, one of the three above; it refers to the memory of `bytes`, or to the
// sender's, and shares it. BAD_ARGUMENT if the bytes are no such message, or it holds no chunk;
// BAD_CHUNK if the payload is no whole number of elements, or not in the sender's memory, or its
// encoding is none; CORRUPT_CHUNK if its checksum is wrong. Encoded elements are not decoded yet.
template <typename Message>
absl::StatusOr<TensorChunk> DecodeChunk(const grpc::ByteBuffer& bytes,
                                        const SenderMemory& memory = nullptr);

extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::PushGradientsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::InitializeParamsRequest>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);
extern template absl::StatusOr<TensorChunk> DecodeChunk<v1::PullParamsResponse>(
    const grpc::ByteBuffer& bytes, const SenderMemory& memory);

// Any other message, through generated code.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);
// False if `bytes` are no such message.
bool DecodeMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_CHUNK_H_
