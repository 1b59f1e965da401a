#include "server/rpc/snapshot_chunks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// Each encoding needs memory of the model's size.
constexpr size_t kMostEncodings = 4;

ChunkMessages Encode(const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums) {
  ChunkMessages chunks;
  ForEachChunk(0, {snapshot->values.span(), snapshot}, checksums,
               [&](grpc::ByteBuffer chunk, uint64_t) {
                 chunks.push_back(std::move(chunk));
                 return true;
               });
  return chunks;
}

ChunkMessages MessagesOf(const std::vector<SnapshotPart>& parts) {
  ChunkMessages chunks;
  for (const SnapshotPart& part : parts) {
    if (part.encoded.has_value()) {
      chunks.push_back(EncodeChunk(*part.encoded));
      continue;
    }
    ForEachChunk(part.offset, part.floats, Checksums::kOn, [&](grpc::ByteBuffer chunk, uint64_t) {
      chunks.push_back(std::move(chunk));
      return true;
    });
  }
  return chunks;
}

}  // namespace

grpc::ByteBuffer EncodePart(const std::shared_ptr<const Snapshot>& snapshot, uint64_t offset,
                            uint64_t end, Checksums checksums) {
  return EncodeChunk(offset, {snapshot->values.span().subspan(offset, end - offset), snapshot},
                     checksums);
}

std::shared_ptr<const ChunkMessages> SnapshotChunks::Of(
    const std::shared_ptr<const Snapshot>& snapshot, Checksums checksums) {
  absl::MutexLock lock(&mu_);
  Plain& plain = plain_[checksums == Checksums::kOn ? 1 : 0];
  std::shared_ptr<const ChunkMessages> chunks = plain.chunks.lock();
  // The chunks own their snapshot, so its memory has not been used for another snapshot.
  if (chunks != nullptr && plain.snapshot.lock() == snapshot) return chunks;
  chunks = std::make_shared<const ChunkMessages>(Encode(snapshot, checksums));
  plain.snapshot = snapshot;
  plain.chunks = chunks;
  return chunks;
}

absl::StatusOr<SnapshotChunks::Encoded> SnapshotChunks::Of(
    const std::shared_ptr<const Snapshot>& snapshot, const Encoding& encoding) {
  const auto found = Find(encoding);
  if (!found.ok()) return found.status();
  InEncoding& state = **found;
  // Other pulls with this encoding wait here, and then find the encoded snapshot.
  absl::MutexLock lock(&state.mu);
  if (state.latest.chunks == nullptr || state.latest.step < snapshot->step) {
    const auto parts = state.encoder.Encode(*snapshot, shard_.parallel());
    state.latest = {snapshot->step, std::make_shared<const ChunkMessages>(MessagesOf(parts))};
  }
  return state.latest;
}

absl::StatusOr<SnapshotChunks::InEncoding*> SnapshotChunks::Find(const Encoding& encoding) {
  if (encoding.sparse()) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("parameters cannot be pulled as ", EncodingName(encoding),
                                  ", since those that are not sent would be 0; ask for float16, "
                                  "bfloat16, int8, or float32 with a compressor"));
  }
  const std::string name = EncodingName(encoding);
  absl::MutexLock lock(&mu_);
  const auto found = encodings_.find(name);
  if (found != encodings_.end()) return found->second.get();
  if (encodings_.size() == kMostEncodings) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("parameters are pulled in ", kMostEncodings,
                                  " encodings already; ask for one of those, not for ", name));
  }
  auto made = std::make_unique<InEncoding>(*shard_.layout(), encoding, transforms_);
  return encodings_.emplace(name, std::move(made)).first->second.get();
}

}  // namespace sluice
