// A checkpoint of one stripe, in a job with several servers. A holder makes it, and server/durable
// writes and reads it.

#ifndef SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_
#define SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Which stripe, of how many servers.
struct StripePlace {
  uint32_t stripe = 0;
  uint32_t stripes = 1;

  friend bool operator==(const StripePlace& a, const StripePlace& b) {
    return a.stripe == b.stripe && a.stripes == b.stripes;
  }
};

// A stripe's state after a step.
struct StripeCheckpoint {
  std::shared_ptr<const Snapshot> parameters;
  std::vector<SlotCheckpoint> slots;
  uint64_t optimizer_steps = 0;
  // As in ShardCheckpoint.
  std::shared_ptr<const SavedRows> rows = nullptr;
  std::vector<RowSlots> row_slots = {};
  uint64_t row_steps = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_
