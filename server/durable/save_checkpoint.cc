#include "server/durable/save_checkpoint.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace sluice {

void SaveCheckpoint(Shard& shard, DurableDirectory& directory, SaveCallback done) {
  shard.durability().TakeCheckpoint([&directory, done = std::move(done)](const auto& checkpoint) {
    if (checkpoint.ok()) {
      directory.saver().Save(*checkpoint, done);
    } else {
      done(checkpoint.status());
    }
  });
}

absl::Status SaveCheckpointAndWait(Shard& shard, DurableDirectory& directory) {
  absl::Status result;
  absl::Notification done;
  SaveCheckpoint(shard, directory, [&](absl::StatusOr<SavedCheckpoint> saved) {
    result = std::move(saved).status();
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

}  // namespace sluice
