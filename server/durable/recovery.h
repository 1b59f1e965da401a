// Restores a shard from a directory when a server starts.

#ifndef SLUICE_SERVER_DURABLE_RECOVERY_H_
#define SLUICE_SERVER_DURABLE_RECOVERY_H_

#include <functional>

#include "absl/status/status.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Brings a new shard to the last step that can be restored from the directory, begins a new
// incarnation, and connects the two: from then on the shard's checkpoints and, if asked for, its
// journal go to the directory. Called once. With one server, before other threads use the shard.
// With several, between DurabilityCalls::BeginRecovery() and EndRecovery(): if there is a
// checkpoint, it waits until the other servers have loaded their stripes, and other threads may use
// the shard. The shard outlives the directory, whose threads call it. Errors are those of Shard and
// of DurableDirectory. If a step cannot be replayed, only RemoveLeftovers() has changed the
// directory. `fatal` is JournalListener's; if it is null, a failed sync ends the process.
absl::Status Recover(DurableDirectory& directory, Shard& shard,
                     std::function<void(const absl::Status&)> fatal = nullptr);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_RECOVERY_H_
