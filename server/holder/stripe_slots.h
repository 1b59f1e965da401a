// The optimizer's slots of a stripe, to and from a checkpoint.

#ifndef SLUICE_SERVER_HOLDER_STRIPE_SLOTS_H_
#define SLUICE_SERVER_HOLDER_STRIPE_SLOTS_H_

#include <vector>

#include "absl/status/status.h"
#include "common/base/parallel.h"
#include "server/aggregation/stripe_executor.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Called by the thread that makes steps, while none is made. Takes a time that grows with the
// model.
std::vector<SlotCheckpoint> CopySlots(StripeExecutor& stripe, Parallel& parallel);

// Before the first step. DATA_LOSS if they are not the slots of the stripe's optimizer.
absl::Status RestoreSlots(const std::vector<SlotCheckpoint>& slots, StripeExecutor& stripe,
                          Parallel& parallel);

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_STRIPE_SLOTS_H_
