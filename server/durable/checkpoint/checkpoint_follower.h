// Reads a directory's checkpoints as they appear, each once, while a server writes and removes
// files there. It locks nothing and changes nothing, so the server is not affected. For
// sluice_evaluate.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// A checkpoint whose bytes were all checked.
struct FollowedCheckpoint {
  CheckpointPlace place;  // names its file
  ShardCheckpoint checkpoint;
};

// For one thread.
class CheckpointFollower {
 public:
  // Follows the server of `directory`; of several servers, that is the leader. `others` are the
  // directories of the others, if they do not share it. `files` outlives this.
  CheckpointFollower(FileSystem& files, std::string directory,
                     std::vector<std::string> others = {});

  // Returns the oldest checkpoint that is at least `every` steps newer than the one returned
  // before, or is of a later incarnation. If there is none and `finally` is set, it returns the
  // newest one that was not returned yet. Null if there is none, or no directory. A damaged
  // checkpoint is named in the log and skipped; one that the server removes meanwhile is skipped.
  // If there are `others`, a damaged one is tried again at the next call: its files may still come
  // there.
  // Errors are FileSystem's.
  absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> Next(uint64_t every, bool finally);

  // Whether the newest checkpoint says that training had ended when it was saved. If also no server
  // holds the directory (FileLock::IsHeld()), the run is over.
  absl::StatusOr<bool> HasEnded();

  uint32_t damaged() const { return static_cast<uint32_t>(damaged_.size()); }  // number so far

 private:
  absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> Load(const CheckpointName& name);
  bool IsDue(const CheckpointName& name, uint64_t every) const;

  const bool files_may_come_;    // into the directories of other servers
  const CheckpointStore store_;  // saves nothing
  absl::optional<CheckpointName> given_;
  std::set<CheckpointName> damaged_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
