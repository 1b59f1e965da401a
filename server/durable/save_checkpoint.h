// Saves a checkpoint of a shard in a directory.

#ifndef SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_
#define SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_

#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Saves a checkpoint of the shard's current step, then calls `done`: on another thread, or on this
// one before it returns. `directory` outlives the call of `done`. Errors are
// DurabilityCalls::TakeCheckpoint's and FileSystem's.
void SaveCheckpoint(Shard& shard, DurableDirectory& directory, SaveCallback done);

// The same, and returns when it is saved.
absl::Status SaveCheckpointAndWait(Shard& shard, DurableDirectory& directory);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_
