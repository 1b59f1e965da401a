// Where the values of a checkpoint are that a server has read.

#ifndef SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_
#define SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_

#include "common/checkpoint/checkpoint_contents.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// That of a checkpoint whose state was read.
inline CheckpointSource SourceOf(const ShardCheckpoint& state) {
  CheckpointSource source = {state.job_id, state.incarnations.current(), state.step, state.stripes,
                             {},           state.optimizer_steps};
  for (const SlotCheckpoint& slot : state.slots) source.slots.push_back(slot.name);
  return source;
}

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_
