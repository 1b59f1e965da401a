#include "server/snapshots/snapshot_encoder.h"

#include <utility>

#include "absl/types/span.h"
#include "common/encoding/codec.h"
#include "common/encoding/error_feedback.h"

namespace sluice {

SnapshotEncoder::SnapshotEncoder(const Layout& layout, const Encoding& encoding,
                                 const TransformRegistry& transforms)
    : transforms_(transforms),
      choice_({encoding, {}, {}}),
      chunks_(PlanChunks(layout, choice_)),
      left_over_size_(encoding.lossy() ? layout.size() : 0) {}

std::vector<SnapshotPart> SnapshotEncoder::Encode(const Snapshot& snapshot, Parallel& parallel) {
  if (left_over_.size() != left_over_size_) left_over_ = FloatBuffer::Zeroed(left_over_size_);
  std::vector<SnapshotPart> parts(chunks_.size());
  parallel.For(parts.size(), [&](size_t i) {
    const PlannedChunk& chunk = chunks_[i];
    parts[i].offset = chunk.begin;
    if (chunk.encoding != nullptr) {
      parts[i].encoded = EncodeChunk(chunk, snapshot);
    } else {
      // It is small, so it is copied: a reference would keep the snapshot's memory from being
      // reused.
      const auto values = snapshot.values.span().subspan(chunk.begin, chunk.end - chunk.begin);
      parts[i].floats = Share({values.begin(), values.end()});
    }
  });
  return parts;
}

EncodedChunk SnapshotEncoder::EncodeChunk(const PlannedChunk& chunk, const Snapshot& snapshot) {
  const size_t size = chunk.end - chunk.begin;
  const absl::Span<const float> values = snapshot.values.span().subspan(chunk.begin, size);
  ChunkContext context;
  context.seed = snapshot.step.value() ^ chunk.begin << 32;
  context.columns = chunk.columns;
  if (left_over_size_ == 0) {
    return EncodeValues(chunk.begin, values, *chunk.encoding, context, transforms_);
  }
  const absl::Span<float> left = left_over_.span().subspan(chunk.begin, size);
  return EncodeWithFeedback(chunk.begin, values, left, *chunk.encoding, context, transforms_, left);
}

}  // namespace sluice
