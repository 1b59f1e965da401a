// Reads a checkpoint whose place is known, whether one server or several have saved it. The place
// names the checkpoint's file.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_

#include "absl/status/statusor.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/checkpoint/stripe_place.h"
#include "common/storage/file_system.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Reads the state and all values, and checks every byte. `output` says how far it is. DATA_LOSS
// says what is wrong, and names the stripe's file if the error is in one. Other errors are
// FileSystem's.
absl::StatusOr<ShardCheckpoint> ReadWholeCheckpoint(FileSystem& files, const CheckpointPlace& place,
                                                    const ProgressOutput& output);

// Reads the state and the values of a stripe, whose number of stripes need not be the one that was
// saved.
absl::StatusOr<ShardCheckpoint> ReadStripeOfCheckpoint(FileSystem& files,
                                                       const CheckpointPlace& place,
                                                       StripePlace stripe);

// Reads the state and the rows of all servers, without the values. It checks every byte that has to
// do with rows.
absl::StatusOr<ShardCheckpoint> ReadRowsOfCheckpoint(FileSystem& files,
                                                     const CheckpointPlace& place);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_
