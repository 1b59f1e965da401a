// Shards and their images, for tests of what outlives a server.

#ifndef SLUICE_TESTS_TESTING_DURABLE_IMAGES_H_
#define SLUICE_TESTS_TESTING_DURABLE_IMAGES_H_

#include <cstdint>
#include <memory>

#include "server/shard/shard.h"
#include "tests/testing/shard/shard_world.h"

namespace sluice {

// Of that shard now; null if it has none, or is at work.
std::shared_ptr<const ShardImage> ImageOf(Shard& shard);

// An image of a shard at step 2, with Adam's slots, of a layout with a statistic; two workers, "a"
// and "b", made each of the steps.
std::shared_ptr<const ShardImage> TrainedImage();

// An image of a model of one parameter, whose value is the step.
ShardImage ImageAt(uint64_t step, uint64_t incarnation = 1);

// Of an image: its values, those of each slot after those of the parameters.
Values AllValues(const ShardImage& image);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_IMAGES_H_
