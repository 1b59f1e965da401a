// A chunk of a push or an offer that was received, and what it counts in WireBytes if it is taken.

#ifndef SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_
#define SLUICE_SERVER_RPC_ARRIVED_CHUNK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "common/wire/chunk.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// Returns the part of `chunk` that lies in the stripe with this layout; see TakeStripe(). Errors:
// that of `chunk`, and those of TakeStripe().
inline absl::StatusOr<TensorChunk> OfStripe(const Layout& layout,
                                            absl::StatusOr<TensorChunk> chunk) {
  if (!chunk.ok()) return chunk;
  const absl::Status taken = TakeStripe(layout, *chunk);
  if (!taken.ok()) return taken;
  return chunk;
}

// Decodes the chunk in `bytes`, a `Message`, and does the same. Errors: those of DecodeChunk(),
// too.
template <typename Message>
absl::StatusOr<TensorChunk> ReadArrivedChunk(const grpc::ByteBuffer& bytes,
                                             const SenderMemory& memory, const Layout& layout) {
  return OfStripe(layout, DecodeChunk<Message>(bytes, memory));
}

class ArrivedChunk {
 public:
  // `chunk` took `wire_bytes` bytes on the wire. It may be an error, or invalid.
  ArrivedChunk(const absl::StatusOr<TensorChunk>& chunk, uint64_t wire_bytes) {
    if (!chunk.ok() || chunk->foreign) return;
    if (chunk->encoded.has_value()) transform_ = chunk->encoded->how.transform;
    bytes_ = {chunk->size() * sizeof(float), wire_bytes};
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
