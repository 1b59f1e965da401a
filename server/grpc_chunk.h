// Chunks from the wire into a staged vector: the part that pushes and initial parameters share.

#ifndef SLUICE_SERVER_GRPC_CHUNK_H_
#define SLUICE_SERVER_GRPC_CHUNK_H_

#include <utility>

#include "absl/status/status.h"
#include "common/wire_chunk.h"

namespace sluice {

// Adds the chunk in `bytes`, which are a `Message`, to `vector`, which then shares their memory, or
// that of the sender. Errors are DecodeChunk's and StagedVector::Add's.
template <typename Message, typename Vector>
absl::Status AddChunkTo(const grpc::ByteBuffer& bytes, const SenderMemory& memory, Vector& vector) {
  absl::StatusOr<TensorChunk> chunk = DecodeChunk<Message>(bytes, memory);
  if (!chunk.ok()) return chunk.status();
  return vector.Add(*std::move(chunk));
}

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_CHUNK_H_
