// A checkpoint of one stripe, in a job with several servers. A holder makes it, and server/durable
// writes and reads it.

#ifndef SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_
#define SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/saved_rows.h"
#include "common/checkpoint/stripe_place.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

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
