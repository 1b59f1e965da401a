#include "server/durable/save_checkpoint.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace sluice {

void SaveCheckpoint(Shard& shard, DurableDirectory& directory, SaveCallback done) {
  shard.TakeImage([&directory, done = std::move(done)](const auto& image) {
    if (image.ok()) {
      directory.Save(*image, done);
    } else {
      done(image.status());
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
