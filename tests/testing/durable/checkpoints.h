// Shards and their checkpoints, for tests of what outlives a server.

#ifndef SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_
#define SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_

#include <cstdint>
#include <memory>

#include "server/shard/shard.h"
#include "tests/testing/shard/shard_world.h"

namespace sluice {

// Of that shard now; null if it has none, or is at work.
std::shared_ptr<const ShardCheckpoint> CheckpointOf(Shard& shard);

// An checkpoint of a shard at step 2, with Adam's slots, of a layout with a statistic; two workers,
// "a" and "b", made each of the steps.
std::shared_ptr<const ShardCheckpoint> TrainedCheckpoint();

// An checkpoint of a model of one parameter, whose value is the step.
ShardCheckpoint CheckpointAt(uint64_t step, uint64_t incarnation = 1);

// Of an checkpoint: its values, those of each slot after those of the parameters.
Values AllValues(const ShardCheckpoint& checkpoint);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_
