#include "server/grpc_snapshot_chunks.h"

#include <algorithm>

#include "common/exchange.h"
#include "common/wire_chunk.h"

namespace sluice {
namespace {

EncodedChunks Encode(const std::shared_ptr<const Snapshot>& snapshot) {
  const uint64_t size = snapshot->values.size();
  EncodedChunks chunks;
  chunks.reserve((size + kChunkElements - 1) / kChunkElements);
  for (uint64_t offset = 0; offset < size; offset += kChunkElements) {
    chunks.push_back(EncodePart(snapshot, offset, std::min(size, offset + kChunkElements)));
  }
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
