// Sends elements of one stripe to the server that holds it.

#ifndef SLUICE_WORKER_CONNECTION_SEND_STRIPE_H_
#define SLUICE_WORKER_CONNECTION_SEND_STRIPE_H_

#include <cstdint>
#include <memory>

#include "common/tensor/shared_floats.h"
#include "common/tensor/stripe_span.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Elements of one stripe, in memory that `owner` owns.
struct SharedStripe {
  StripeSpan<const float> span;
  std::shared_ptr<const void> owner;

  // `part` has elements of the vector from element `offset` on.
  static SharedStripe Of(const Stripes& stripes, uint32_t stripe, uint64_t offset,
                         const SharedFloats& part) {
    return {StripeSpan<const float>(stripes, stripe, offset, part.values), part.owner};
  }

  // [begin, end) of the stripe. They are copied if they are not one piece of the memory.
  SharedFloats Part(uint64_t begin, uint64_t end) const;
};

// Sends [begin, end) of the stripe through `push`, which takes elements of that stripe. False if
// the push has ended. Small pieces are copied together first, since each message costs as much as
// a copy of some 64 KiB.
bool SendStripe(const SharedStripe& stripe, uint64_t begin, uint64_t end, OutgoingPush& push);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_SEND_STRIPE_H_
