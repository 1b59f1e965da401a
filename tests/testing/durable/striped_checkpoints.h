// Checkpoints of several servers, whose values tests know.

#ifndef SLUICE_TESTS_TESTING_DURABLE_STRIPED_CHECKPOINTS_H_
#define SLUICE_TESTS_TESTING_DURABLE_STRIPED_CHECKPOINTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/durable/checkpoint/stripe_writer.h"
#include "server/state/checkpoint_source.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// A layout of vectors of these sizes, with the names "t0", "t1", …
std::shared_ptr<const Layout> LayoutOfSizes(const std::vector<uint64_t>& sizes);

// A checkpoint of job "job" with these slots and 7 steps of the optimizer. Its values have random
// bits, also those of infinities and NaNs, and differ from those of other checkpoints.
ShardCheckpoint KnownCheckpoint(const CheckpointName& name, std::shared_ptr<const Layout> layout,
                                const std::vector<std::string>& slots = {"m", "v"});

// What a stripe has of a checkpoint with all values.
StripeCheckpoint StripeOf(const ShardCheckpoint& checkpoint, StripePlace place);

// Saves a checkpoint with all values as so many servers with one directory do: each its stripe, and
// then the first one its file, which removes older ones beyond `keep`. One server saves one file.
absl::StatusOr<CheckpointSource> SaveAsServers(FileSystem& files, const std::string& directory,
                                               const ShardCheckpoint& checkpoint, uint32_t servers,
                                               uint32_t keep = 100);

// Whether two vectors have the same bits.
bool SameBits(absl::Span<const float> a, absl::Span<const float> b);

// Expects that two stripes have the same bits, slots, step and number of the optimizer's steps.
void ExpectSameStripe(const StripeCheckpoint& found, const StripeCheckpoint& expected);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_STRIPED_CHECKPOINTS_H_
