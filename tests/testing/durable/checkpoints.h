// Checkpoints of shards, for tests of server/durable.

#ifndef SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_
#define SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_

#include <cstdint>
#include <memory>

#include "server/shard/shard.h"
#include "tests/testing/shard/shard_world.h"

namespace sluice {

// Takes a checkpoint of the shard. Null if the shard has no parameters yet, or is making a step.
std::shared_ptr<const ShardCheckpoint> CheckpointOf(Shard& shard);

// A checkpoint at step 2. It has Adam's slots, and its layout has a statistic. The workers "a" and
// "b" pushed gradients for both steps.
std::shared_ptr<const ShardCheckpoint> TrainedCheckpoint();

// A checkpoint of a model with one parameter, whose value is `step`.
ShardCheckpoint CheckpointAt(uint64_t step, uint64_t incarnation = 1);

// All values of a checkpoint: first the parameters, then each slot.
Values AllValues(const ShardCheckpoint& checkpoint);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_CHECKPOINTS_H_
