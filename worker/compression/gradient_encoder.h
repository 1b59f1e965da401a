// Encodes a worker's gradients before they are sent, with error feedback.
//
// Error feedback: the encoder stores the residual, which is what a lossy encoding loses of a
// gradient, and adds it to the next gradient (common/encoding/error_feedback.h). Momentum
// correction: the encoder sends the accumulated momentum instead of the gradient
// (momentum_correction.h).
//
// With several servers, each stripe of the gradient is encoded for itself (stripe_encoder.h), and
// goes to the server that holds it. What a stripe loses stays with that stripe. Only a matrix in
// low-rank is encoded from the whole vector: its narrow matrices go to each server that holds a
// part of it.

#ifndef SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "worker/compression/chunk_encoder.h"
#include "worker/compression/gradient_encoding.h"
#include "worker/compression/joined_parts.h"
#include "worker/compression/stripe_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Used by one thread at a time. It holds two vectors of the model's size for error feedback, two
// for momentum correction, and one encoded push. If several servers get some tensors in low-rank
// and others in another lossy encoding, it holds twice as many vectors.
class GradientEncoder {
 public:
  // What was sent of a push: of each stripe, its elements.
  using Sent = std::vector<Coverage>;

  // For gradients of `layout`, which `servers` servers hold. `worker` is the worker's name.
  GradientEncoder(const Layout& layout, GradientEncoding encoding, const std::string& worker,
                  uint32_t servers = 1);

  GradientEncoder(const GradientEncoder&) = delete;
  GradientEncoder& operator=(const GradientEncoder&) = delete;

  // Sets the encoding of an automatic choice from the next push on. Chunks whose `plain` is set are
  // sent unencoded: those of PlanChunks() of the first stripe, then of the next; empty: none is.
  // The residual of earlier pushes is added to the next push; a lossless encoding sends all of it.
  void Use(const Encoding& encoding, const std::vector<bool>& plain);

  // Begins push number `push`, of a gradient computed on `step`. A push has the same bytes however
  // often it is sent. `learning_rate` is the rate of the step that the gradient is for, 0 if
  // unknown or if a gradient's effect is not proportional to it. If the rate has changed, the
  // residual is scaled, so that it changes the parameters as much as it would have at its own rate
  // (a millionth of the largest rate, if the rate is smaller).
  void Begin(Sequence push, Step step, double learning_rate);

  // Of a push that starts.
  Sent NothingSent() const;

  // Sends what `sent` lacks of `part`, which are the gradient's elements from `offset` on: elements
  // of plain chunks, and encoded chunks that lie wholly in `part`. Notes that in `sent`. False if
  // the push has ended.
  bool Send(uint64_t offset, const SharedFloats& part, OutgoingPush& push, Sent& sent);

  // The same for a part that comes before the rest of the gradient. A chunk is sent when all of it
  // has come, if its parts lie in one memory, which does not change until End().
  bool SendEarly(uint64_t offset, const SharedFloats& part, OutgoingPush& push, Sent& sent);

  // Ends the push. If it counted, its residual replaces the earlier one; otherwise its residual is
  // dropped, and the earlier one stays.
  void End(bool counted);

 private:
  using Chunks = std::vector<const EncodedChunk*>;

  void Follow(double learning_rate);
  // Calls act(encoder) for each.
  template <typename Act>
  void ForEachEncoder(const Act& act);
  // Encodes the chunks of whole_ that lie wholly in `part`, before anything of it is sent: that
  // takes longer than sending what comes out.
  Chunks EncodeWhole(uint64_t offset, absl::Span<const float> part);
  // Sends the server of that stripe those of `chunks` that it needs and lacks.
  bool SendWhole(const Chunks& chunks, uint32_t stripe, OutgoingPush& push, Coverage& sent) const;

  GradientEncoding encoding_;
  const Stripes stripes_;
  std::vector<std::unique_ptr<StripeEncoder>> encoders_;  // one for each stripe
  std::unique_ptr<ChunkEncoder> whole_;                   // of PlanWhole(); null if it has none
  JoinedParts early_;                                     // of this push
  double learning_rate_ = 0;                              // that the residual is for; 0: unknown
  double largest_rate_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_GRADIENT_ENCODER_H_
