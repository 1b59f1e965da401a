// Encodes a worker's gradients before they are sent, with error feedback.
//
// Error feedback: the encoder stores the residual, which is what a lossy encoding loses of a
// gradient, and adds it to the next gradient (common/encoding/error_feedback.h). Momentum
// correction: the encoder sends the accumulated momentum instead of the gradient
// (momentum_correction.h).

#ifndef SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "common/trace/trace.h"
#include "worker/compression/momentum_correction.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct GradientEncoding {
  EncodingChoice choice;
  bool error_feedback = true;  // matters for lossy encodings and momentum correction
  float momentum = 0;          // the optimizer's, if the choice corrects momentum
  // Random numbers depend only on this seed, the worker, the push and the chunk.
  uint64_t seed = 1;
  Trace* trace = nullptr;  // of this process, if any; outlives the encoder
  TransformRegistry transforms = BuiltinTransforms();  // has all that the choice names
};

// Used by one thread at a time. It holds two vectors of the model's size for error feedback, two
// for momentum correction, and one encoded push.
class GradientEncoder {
 public:
  // For gradients of `layout`. `worker` is the worker's name.
  GradientEncoder(const Layout& layout, GradientEncoding encoding, const std::string& worker);

  GradientEncoder(const GradientEncoder&) = delete;
  GradientEncoder& operator=(const GradientEncoder&) = delete;

  // Sets the encoding of an automatic choice from the next push on. Chunks of PlanChunks() whose
  // `plain` is set are sent unencoded. The residual of earlier pushes is added to the next push; a
  // lossless encoding sends all of it.
  void Use(const Encoding& encoding, const std::vector<bool>& plain);

  // Begins push number `push`, of a gradient computed on `step`. A push has the same bytes however
  // often it is sent. `learning_rate` is the rate of the step that the gradient is for, 0 if
  // unknown. If the rate has changed, the residual is scaled, so that it changes the parameters as
  // much as it would have at its own rate.
  void Begin(Sequence push, Step step, double learning_rate);

  // Sends elements of `part`, which are the gradient's elements from `offset` on, and notes in
  // `sent` which ones: those of plain chunks, and encoded chunks of PlanChunks() that lie wholly in
  // `part`. False if the push has ended.
  bool Send(uint64_t offset, const SharedFloats& part, OutgoingPush& push, Coverage& sent);

  // Ends the push. If it counted, its residual replaces the earlier one; otherwise its residual is
  // dropped, and the earlier one stays.
  void End(bool counted);

 private:
  // Null if the chunk is sent unencoded.
  const Encoding* EncodingOf(size_t chunk) const;
  EncodedChunk Encode(size_t chunk, absl::Span<const float> gradient);
  bool KeepsLeftOver(const PlannedChunk& chunk) const;
  void Follow(double learning_rate);
  uint64_t SeedOf(uint64_t begin) const;

  GradientEncoding encoding_;
  const uint64_t seed_;  // of this worker
  const std::vector<PlannedChunk> chunks_;
  std::vector<bool> plain_;  // chunks that an automatic choice sends unencoded; may be empty
  std::vector<std::vector<float>> memories_;           // the state of each chunk's transform
  std::vector<absl::optional<EncodedChunk>> encoded_;  // this push's chunks
  std::vector<float> left_over_;            // by pushes that counted; empty without error feedback
  std::vector<float> next_left_over_;       // the same if this push counts
  MomentumCorrection momentum_correction_;  // empty without momentum correction
  Sequence push_;
  Step step_;
  double learning_rate_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
