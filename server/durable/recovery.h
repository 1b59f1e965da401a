// A server's beginning: from the disk to a shard.

#ifndef SLUICE_SERVER_DURABLE_RECOVERY_H_
#define SLUICE_SERVER_DURABLE_RECOVERY_H_

#include <functional>

#include "absl/status/status.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Has a new shard go on where the directory's earlier life ended, and from now on keep there what
// the directory's options say. Both outlive each other's use: the shard is told of what is kept
// until the directory ends. Errors are DurableDirectory's. `fatal` is JournalListener's; null: the
// process ends.
absl::Status Recover(DurableDirectory& directory, Shard& shard,
                     std::function<void(const absl::Status&)> fatal = nullptr);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_RECOVERY_H_
