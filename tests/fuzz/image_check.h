// What holds of every image of a shard that was read.

#ifndef SLUICE_TESTS_FUZZ_IMAGE_CHECK_H_
#define SLUICE_TESTS_FUZZ_IMAGE_CHECK_H_

#include "server/state/shard_image.h"

namespace sluice {

// Dies unless a checkpoint of it is read as the same, to the byte.
void CheckComesBack(const ShardImage& image);

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_IMAGE_CHECK_H_
