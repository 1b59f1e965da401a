// Encodes and sends one stripe of a worker's gradients. With one server the stripe is the whole
// vector. GradientEncoder has one for each server, and says what they do.

#ifndef SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_
#define SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/coverage.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "worker/compression/chunk_encoder.h"
#include "worker/connection/send_stripe.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Used by one thread at a time. Encoders of different stripes have nothing in common that changes.
class StripeEncoder {
 public:
  // For a stripe of gradients of `layout`. The rest is as in ChunkEncoder.
  StripeEncoder(const Layout& layout, const Stripes& stripes, uint32_t stripe,
                const GradientEncoding& encoding, uint64_t seed)
      : size_(stripes.SizeOf(stripe)),
        encoder_(PlanChunks(layout.OfStripe(stripes, stripe), encoding.choice), {stripes, stripe},
                 encoding, seed) {}

  // Its chunks are those of PlanChunks().
  ChunkEncoder& encoder() { return encoder_; }
  // Elements of the stripe.
  uint64_t size() const { return size_; }

  // Sends what `sent` lacks of `part`: elements of plain chunks, and encoded chunks that lie wholly
  // in it. Notes that in `sent`, which counts the stripe's elements. False if the push has ended.
  // It leaves out chunks that are encoded from the whole vector (PlannedChunk::elsewhere).
  bool Send(const SharedStripe& part, OutgoingPush& push, Coverage& sent);

 private:
  bool SendRange(const SharedStripe& part, uint64_t begin, uint64_t end, OutgoingPush& push,
                 Coverage& sent);

  const uint64_t size_;
  ChunkEncoder encoder_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_STRIPE_ENCODER_H_
