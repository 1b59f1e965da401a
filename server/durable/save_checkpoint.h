// From a shard to the disk.

#ifndef SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_
#define SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_

#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Saves a checkpoint of the step that is reached, and calls `done`, perhaps on another thread and
// before it returns. `directory` outlives that. Errors are Shard::TakeCheckpoint's and
// FileSystem's.
void SaveCheckpoint(Shard& shard, DurableDirectory& directory, SaveCallback done);

// As above, and waits for it.
absl::Status SaveCheckpointAndWait(Shard& shard, DurableDirectory& directory);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_SAVE_CHECKPOINT_H_
