// Encodes snapshots for the workers that pull with one encoding. The rpc layer makes one encoder
// for each encoding and encodes each snapshot once; all pulls of that step share the result.

#ifndef SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_
#define SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_

#include <memory>
#include <vector>

#include "common/base/parallel.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

// A part of a snapshot, encoded or as float32.
struct SnapshotPart {
  uint64_t offset = 0;  // of its first element
  SharedFloats floats;  // empty if `encoded` is set
  absl::optional<EncodedChunk> encoded;
};

// The encoding is not sparse. If it is lossy, the encoder adds the rounding error of one step's
// parameters to those of the next step before it encodes them (error feedback), so that on average
// workers see the server's values. Externally synchronized.
class SnapshotEncoder {
 public:
  // `transforms` knows the encoding's transform, and outlives the encoder.
  SnapshotEncoder(const Layout& layout, const Encoding& encoding,
                  const TransformRegistry& transforms);

  SnapshotEncoder(const SnapshotEncoder&) = delete;
  SnapshotEncoder& operator=(const SnapshotEncoder&) = delete;

  // Encodes the whole snapshot, in order of offsets. Call it once for each step, because each call
  // updates the error feedback.
  std::vector<SnapshotPart> Encode(const Snapshot& snapshot, Parallel& parallel);

 private:
  EncodedChunk EncodeChunk(const PlannedChunk& chunk, const Snapshot& snapshot);

  const TransformRegistry& transforms_;
  const EncodingChoice choice_;
  const std::vector<PlannedChunk> chunks_;
  const uint64_t left_over_size_;  // 0 if the encoding is lossless
  FloatBuffer left_over_;          // error feedback; empty before the first snapshot
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_ENCODER_H_
