// Encodes the chunks of a worker's gradients, with error feedback and momentum correction.
// GradientEncoder says what these are.

#ifndef SLUICE_WORKER_COMPRESSION_CHUNK_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_CHUNK_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/encoding_plan.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/stripes.h"
#include "worker/compression/gradient_encoding.h"
#include "worker/compression/momentum_correction.h"

namespace sluice {

// Used by one thread at a time. It holds one encoded push. For error feedback it holds two vectors
// of the stripe's size, for momentum correction two more.
class ChunkEncoder {
 public:
  // `chunks` are of that stripe, or some of them. A chunk that has no encoding, or is elsewhere, is
  // not encoded here. `encoding` outlives this; its `choice.encoding` may change between two
  // pushes. `seed` is the worker's.
  ChunkEncoder(std::vector<PlannedChunk> chunks, Stripe stripe, const GradientEncoding& encoding,
               uint64_t seed);

  ChunkEncoder(const ChunkEncoder&) = delete;
  ChunkEncoder& operator=(const ChunkEncoder&) = delete;

  const std::vector<PlannedChunk>& chunks() const { return chunks_; }

  // The chunks that are sent unencoded, where the choice is automatic.
  void UsePlain(std::vector<bool> plain) { plain_ = std::move(plain); }
  void Begin(Sequence push, Step step);
  void ScaleLeftOver(float factor);

  // How that chunk is encoded. Null: it is sent unencoded.
  const Encoding* EncodingOf(size_t chunk) const;
  // Encodes it, which EncodingOf() allows. `gradient` has its elements; only the first call in a
  // push reads them. The result stays until the next push.
  const EncodedChunk& Encode(size_t chunk, absl::Span<const float> gradient);

  void End(bool counted);

 private:
  EncodedChunk EncodeNow(size_t chunk, absl::Span<const float> gradient);
  bool KeepsLeftOver(const PlannedChunk& chunk) const;
  uint64_t SeedOf(uint64_t begin) const;

  const GradientEncoding& encoding_;
  const Stripe stripe_;
  const uint64_t seed_;
  const std::vector<PlannedChunk> chunks_;
  std::vector<bool> plain_;                            // may be empty
  std::vector<std::vector<float>> memories_;           // the state of each chunk's transform
  std::vector<absl::optional<EncodedChunk>> encoded_;  // this push's chunks
  std::vector<float> left_over_;            // by pushes that counted; empty without error feedback
  std::vector<float> next_left_over_;       // the same if this push counts
  MomentumCorrection momentum_correction_;  // empty without momentum correction
  Sequence push_;
  Step step_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_CHUNK_ENCODER_H_
