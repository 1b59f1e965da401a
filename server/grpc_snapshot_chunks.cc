#include "server/grpc_snapshot_chunks.h"

#include <utility>

#include "common/wire_chunk.h"

namespace sluice {
namespace {

EncodedChunks Encode(const std::shared_ptr<const Snapshot>& snapshot) {
  EncodedChunks chunks;
  ForEachChunk(0, {snapshot->values.span(), snapshot}, [&](grpc::ByteBuffer chunk, uint64_t) {
    chunks.push_back(std::move(chunk));
    return true;
  });
  return chunks;
}

}  // namespace

grpc::ByteBuffer EncodePart(const std::shared_ptr<const Snapshot>& snapshot, uint64_t offset,
                            uint64_t end) {
  return EncodeChunk(offset, {snapshot->values.span().subspan(offset, end - offset), snapshot});
}

std::shared_ptr<const EncodedChunks> SnapshotChunks::Of(
    const std::shared_ptr<const Snapshot>& snapshot) {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<const EncodedChunks> chunks = chunks_.lock();
  // Chunks keep their snapshot: as long as they live, no other is in its place.
  if (chunks != nullptr && encoded_.lock() == snapshot) return chunks;
  chunks = std::make_shared<const EncodedChunks>(Encode(snapshot));
  encoded_ = snapshot;
  chunks_ = chunks;
  return chunks;
}

}  // namespace sluice
