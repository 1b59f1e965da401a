// Which stripe of how many servers.

#ifndef SLUICE_COMMON_CHECKPOINT_STRIPE_PLACE_H_
#define SLUICE_COMMON_CHECKPOINT_STRIPE_PLACE_H_

#include <cstdint>

namespace sluice {

// One server has stripe 0 of 1: the whole vector.
struct StripePlace {
  uint32_t stripe = 0;
  uint32_t stripes = 1;

  friend bool operator==(const StripePlace& a, const StripePlace& b) {
    return a.stripe == b.stripe && a.stripes == b.stripes;
  }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_STRIPE_PLACE_H_
