// Reads a checkpoint by the path of its file, whether one server or several have saved it.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/stripe_place.h"
#include "common/storage/file_system.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Reads the state and all values, and checks every byte. The stripes' files of several servers are
// expected beside the file. `output` says how far the file of one server is read. DATA_LOSS says
// what is wrong, and names the stripe's file if it is there. Other errors are FileSystem's.
absl::StatusOr<ShardCheckpoint> ReadWholeCheckpoint(FileSystem& files, const std::string& path,
                                                    const ProgressOutput& output);

// Reads the state and the values of a stripe, whose number of stripes need not be the one that was
// saved. A file that one server has saved must have a checkpoint's name if there are several.
absl::StatusOr<ShardCheckpoint> ReadStripeOfCheckpoint(FileSystem& files, const std::string& path,
                                                       StripePlace place);

// Reads the state and the rows of all servers, without the values. It checks every byte that has to
// do with rows. The file must have a checkpoint's name.
absl::StatusOr<ShardCheckpoint> ReadRowsOfCheckpoint(FileSystem& files, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_WHOLE_CHECKPOINT_H_
