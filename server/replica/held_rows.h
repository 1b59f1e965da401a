// The rows that a server has at its latest step, for people who look at one.

#ifndef SLUICE_SERVER_REPLICA_HELD_ROWS_H_
#define SLUICE_SERVER_REPLICA_HELD_ROWS_H_

#include <memory>
#include <vector>

#include "common/tensor/layout.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// A plain value.
struct HeldRows {
  std::shared_ptr<const Layout> layout;      // null before the model is known
  std::shared_ptr<const Snapshot> snapshot;  // null before there are parameters
  std::vector<RowSlots> slots;               // of each table
  StripePlace place;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_HELD_ROWS_H_
