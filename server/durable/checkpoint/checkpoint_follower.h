// Reads a directory's checkpoints as they appear, each once, while a server writes and removes
// them, and without the server's noticing.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// A checkpoint, all of whose bytes were checked.
struct FollowedCheckpoint {
  std::string path;
  ShardCheckpoint checkpoint;
};

// For one thread.
class CheckpointFollower {
 public:
  // `files` outlives it.
  CheckpointFollower(FileSystem& files, std::string directory);

  // The oldest of those that are newer than the one before and at least `every` steps further, or
  // of a later life; with `finally`, if there is none, the newest that was not given. Null if there
  // is none now, nor the directory. One that is damaged is named in the log and passed over; one
  // that its server removes first is passed over. Errors are FileSystem's.
  absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> Next(uint64_t every, bool finally);

  // Whether the newest checkpoint says that training had ended when it was saved. Once no server
  // holds the directory (FileLock::IsHeld()), that tells whether its run is over.
  absl::StatusOr<bool> HasEnded();

  uint32_t damaged() const { return static_cast<uint32_t>(damaged_.size()); }  // so far

 private:
  absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> Load(const CheckpointName& name);
  bool IsDue(const CheckpointName& name, uint64_t every) const;

  const std::string directory_;
  const CheckpointStore store_;  // saves nothing
  absl::optional<CheckpointName> given_;
  std::set<CheckpointName> damaged_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
