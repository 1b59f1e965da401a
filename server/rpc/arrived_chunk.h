// What a chunk that was received counts in WireBytes, if it is taken.

#ifndef SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_
#define SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "common/tensor/tensor_chunk.h"
#include "server/state/wire_bytes.h"

namespace sluice {

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
