// Snapshots as their workers want them written: each is encoded once, for all.

#ifndef SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_
#define SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_

#include <memory>
#include <vector>

#include "common/base/parallel.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

// A part of a snapshot: encoded, or as it is.
struct SnapshotPart {
  uint64_t offset = 0;
  SharedFloats floats;
  absl::optional<EncodedChunk> encoded;  // in place of `floats`
};

// In one encoding, which is not sparse. What a lossy one leaves of a step's parameters is added to
// the next step's before they are encoded, so that on average workers see what the server has.
// Externally synchronized.
class SnapshotEncoder {
 public:
  // `transforms` knows the encoding's transform, and outlives the encoder.
  SnapshotEncoder(const Layout& layout, const Encoding& encoding,
                  const TransformRegistry& transforms);

  SnapshotEncoder(const SnapshotEncoder&) = delete;
  SnapshotEncoder& operator=(const SnapshotEncoder&) = delete;

  // The whole of `snapshot`, in order. To be called once for a step: each time counts.
  std::vector<SnapshotPart> Encode(const Snapshot& snapshot, Parallel& parallel);

 private:
  EncodedChunk EncodeChunk(const PlannedChunk& chunk, const Snapshot& snapshot);

  const TransformRegistry& transforms_;
  const EncodingChoice choice_;
  const std::vector<PlannedChunk> chunks_;
  std::vector<float> left_over_;  // empty if the encoding is lossless
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_
