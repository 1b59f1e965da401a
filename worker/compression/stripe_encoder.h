// Encodes one stripe of a worker's gradients. With one server the stripe is the whole vector.
// GradientEncoder has one for each server, and says what they do.

#ifndef SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "common/trace/trace.h"
#include "worker/compression/momentum_correction.h"
#include "worker/connection/send_stripe.h"
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

// Used by one thread at a time. Encoders of different stripes have nothing in common that changes.
class StripeEncoder {
 public:
  // For a stripe of gradients of `layout`. `encoding` outlives this; its `choice.encoding` may
  // change between two pushes. `seed` is the worker's.
  StripeEncoder(const Layout& layout, const Stripes& stripes, uint32_t stripe,
                const GradientEncoding& encoding, uint64_t seed);

  StripeEncoder(const StripeEncoder&) = delete;
  StripeEncoder& operator=(const StripeEncoder&) = delete;

  // The number of chunks of PlanChunks().
  size_t chunks() const { return chunks_.size(); }
  // Elements of the stripe.
  uint64_t size() const { return stripes_.SizeOf(stripe_); }

  // The chunks that are sent unencoded, where the choice is automatic.
  void UsePlain(std::vector<bool> plain) { plain_ = std::move(plain); }
  void Begin(Sequence push, Step step);
  void ScaleLeftOver(float factor);

  // Sends what `sent` lacks of `part`: elements of plain chunks, and encoded chunks that lie wholly
  // in it. Notes that in `sent`, which counts the stripe's elements. False if the push has ended.
  bool Send(const SharedStripe& part, OutgoingPush& push, Coverage& sent);

  void End(bool counted);

 private:
  bool SendRange(const SharedStripe& part, uint64_t begin, uint64_t end, OutgoingPush& push,
                 Coverage& sent);
  // Null if the chunk is sent unencoded.
  const Encoding* EncodingOf(size_t chunk) const;
  EncodedChunk Encode(size_t chunk, absl::Span<const float> gradient);
  bool KeepsLeftOver(const PlannedChunk& chunk) const;
  uint64_t SeedOf(uint64_t begin) const;

  const GradientEncoding& encoding_;
  const Stripes stripes_;
  const uint32_t stripe_;
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

#endif  // SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_
