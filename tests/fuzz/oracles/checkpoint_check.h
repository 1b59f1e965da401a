// The properties of every checkpoint of a shard that was read.

#ifndef SLUICE_TESTS_FUZZ_ORACLES_CHECKPOINT_CHECK_H_
#define SLUICE_TESTS_FUZZ_ORACLES_CHECKPOINT_CHECK_H_

#include "server/state/shard_checkpoint.h"

namespace sluice {

// Dies unless a checkpoint of it is read as the same, to the byte.
void CheckComesBack(const ShardCheckpoint& checkpoint);

// The same for the state in a checkpoint of several servers, whose file has no values.
void CheckStripedComesBack(const ShardCheckpoint& state);

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_ORACLES_CHECKPOINT_CHECK_H_
