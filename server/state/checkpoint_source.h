// Where the values of a checkpoint are: in one file, if one server has saved it, or in a file for
// each stripe of several servers. server/durable reads them.

#ifndef SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_
#define SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

struct CheckpointSource {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  // The XXH3-64 of each stripe's file, of the number of servers that saved it; empty: one file.
  std::vector<uint64_t> stripes;
  std::vector<std::string> slots;  // the names of the optimizer's
  uint64_t optimizer_steps = 0;
};

// That of a checkpoint whose state was read.
inline CheckpointSource SourceOf(const ShardCheckpoint& state) {
  CheckpointSource source = {state.job_id, state.incarnations.current(), state.step, state.stripes,
                             {},           state.optimizer_steps};
  for (const SlotCheckpoint& slot : state.slots) source.slots.push_back(slot.name);
  return source;
}

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_CHECKPOINT_SOURCE_H_
