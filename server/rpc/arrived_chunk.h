// A chunk of a push that was received, and what it counts in WireBytes if it is taken.

#ifndef SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_
#define SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "common/wire/chunk.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// Returns the chunk in a message of PushGradients or PushLane, for the server that holds what
// `layout` describes. Errors: those of DecodeChunk() and TakeStripe().
inline absl::StatusOr<TensorChunk> ReadPushedChunk(const grpc::ByteBuffer& message,
                                                   const SenderMemory& memory,
                                                   const Layout& layout) {
  absl::StatusOr<TensorChunk> chunk = DecodeChunk<v1::PushGradientsRequest>(message, memory);
  if (!chunk.ok()) return chunk;
  const absl::Status taken = TakeStripe(layout, *chunk);
  if (!taken.ok()) return taken;
  return chunk;
}

class ArrivedChunk {
 public:
  // `chunk` is what `message` contains. It may be an error, or invalid.
  ArrivedChunk(const absl::StatusOr<TensorChunk>& chunk, const grpc::ByteBuffer& message) {
    if (!chunk.ok() || chunk->foreign) return;
    if (chunk->encoded.has_value()) transform_ = chunk->encoded->how.transform;
    bytes_ = {chunk->size() * sizeof(float), message.Length()};
  }

  // The chunk was taken, so it is valid. Chunks in shared memory do not count.
  void Count(WireBytes& wire_bytes) const {
    if (bytes_.wire > 0) wire_bytes.AddChunkReceived(transform_, bytes_);
  }

 private:
  ValueTransform transform_ = ValueTransform::kFloat32;
  ChunkBytes bytes_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_
