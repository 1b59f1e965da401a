// Chunks from the wire into a staged vector: the part that pushes and initial parameters share.

#ifndef SLUICE_SERVER_GRPC_CHUNK_H_
#define SLUICE_SERVER_GRPC_CHUNK_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/wire.h"
#include "server/staged_vector.h"

namespace sluice {

// Adds the chunk in `message` (a PushGradientsRequest or an InitializeParamsRequest), taking its
// payload. BAD_ARGUMENT if it holds none; else as StagedVector::Add.
template <typename Message, typename Vector>
absl::Status AddChunkTo(Message& message, Vector& vector) {
  if (!message.has_chunk()) {
    return MakeError(Reason::kBadArgument, "a message after the header holds no chunk");
  }
  v1::TensorChunk& chunk = *message.mutable_chunk();
  const absl::StatusOr<uint64_t> elements = ElementsIn(chunk);
  if (!elements.ok()) return elements.status();
  return vector.Add({chunk.offset(), std::move(*chunk.mutable_payload())});
}

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_CHUNK_H_
