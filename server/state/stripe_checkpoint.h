// A checkpoint of one stripe: the whole vector, if there is one server. A ServerStripe makes it,
// and server/durable writes and reads it.

#ifndef SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_
#define SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/saved_rows.h"
#include "common/checkpoint/stripe_place.h"
#include "common/tensor/float_buffer.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

// The values of one OptimizerSlot.
struct SlotCheckpoint {
  std::string name;
  FloatBuffer values;
};

// A stripe's state after a step.
struct StripeCheckpoint {
  std::shared_ptr<const Snapshot> parameters;
  std::vector<SlotCheckpoint> slots;
  uint64_t optimizer_steps = 0;
  // The rows of the server's buckets, if the model has tables. A checkpoint that is to be saved has
  // them in parameters->rows, and one that was loaded here.
  std::shared_ptr<const SavedRows> rows = nullptr;
  std::vector<RowSlots> row_slots = {};  // of each table
  uint64_t row_steps = 0;                // RowTables::optimizer_steps()
};

// Gets an immutable copy, or the error. Called outside all locks.
using StripeCopyCallback =
    std::function<void(absl::StatusOr<std::shared_ptr<const StripeCheckpoint>>)>;

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_STRIPE_CHECKPOINT_H_
