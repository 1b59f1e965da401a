// A worker's gradients on their way out: encoded, with error feedback.
//
// What a lossy encoding leaves of a gradient is kept and added to the next: see error_feedback.h.
// With momentum correction what is sent is not the gradient but its velocity: see velocity.h.

#ifndef SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/encoding_plan.h"
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
  bool error_feedback = true;  // for lossy encodings; and with momentum
  float momentum = 0;          // if the choice corrects momentum: the optimizer's
  // What is drawn at random follows from this, the worker, the push and the chunk alone.
  uint64_t seed = 1;
  Trace* trace = nullptr;  // of this process, if any; outlives the encoder
};

// Takes memory for the model twice with error feedback, twice with momentum correction, and for one
// encoded push. To be used by one
// thread at a time.
class GradientEncoder {
 public:
  // Of gradients of that layout. `worker` is its name.
  GradientEncoder(const Layout& layout, GradientEncoding encoding, const std::string& worker);

  GradientEncoder(const GradientEncoder&) = delete;
  GradientEncoder& operator=(const GradientEncoder&) = delete;

  // An automatic choice is this, from the next push on; the chunks of PlanChunks() for which
  // `plain` is set are sent as they are all the same. What was left over stays, and leaves with the
  // next push: with all of it if that is lossless.
  void Use(const Encoding& encoding, const std::vector<bool>& plain);

  // What follows is the push of that number, of a gradient computed on `step`. Each has its own
  // bytes, which are the same however often it is sent. `learning_rate` is that of the step that
  // its gradient is for, 0 if unknown: what was left over is made a change of the same size with
  // it.
  void Begin(Sequence push, Step step, double learning_rate);

  // Sends what it can of `part`, which begins at `offset` of the push's gradient, and notes it in
  // `sent`: all of it, if it begins and ends where chunks of PlanChunks() do. False if the push has
  // ended.
  bool Send(uint64_t offset, const SharedFloats& part, OutgoingPush& push, Coverage& sent);

  // What became of the push: whether it counted. What a push left over that did not is forgotten
  // with it, and what was left over before is not.
  void End(bool counted);

 private:
  // Null: as it is.
  const Encoding* EncodingOf(size_t chunk) const;
  EncodedChunk Encode(size_t chunk, absl::Span<const float> gradient);
  bool KeepsLeftOver(const PlannedChunk& chunk) const;
  void Follow(double learning_rate);
  uint64_t SeedOf(uint64_t begin) const;

  GradientEncoding encoding_;
  const uint64_t seed_;  // of the worker
  const std::vector<PlannedChunk> chunks_;
  std::vector<bool> plain_;  // the chunks that an automatic choice is not worth it for; or none
  std::vector<std::vector<float>> memories_;           // of each chunk's transform
  std::vector<absl::optional<EncodedChunk>> encoded_;  // of the push, each chunk
  std::vector<float> left_over_;       // of all pushes that counted; empty without error feedback
  std::vector<float> next_left_over_;  // if the push counts, too
  MomentumCorrection momentum_correction_;  // empty without momentum correction
  Sequence push_;
  Step step_;
  double learning_rate_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
