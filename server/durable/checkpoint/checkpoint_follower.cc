#include "server/durable/checkpoint/checkpoint_follower.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/checkpoint/file_names.h"

namespace sluice {
namespace {

// A directory that does not exist has no checkpoints.
absl::StatusOr<std::vector<CheckpointName>> OldestFirst(const CheckpointStore& store) {
  auto names = store.List();
  if (absl::IsNotFound(names.status())) return std::vector<CheckpointName>();
  if (names.ok()) std::reverse(names->begin(), names->end());
  return names;
}

}  // namespace

CheckpointFollower::CheckpointFollower(FileSystem& files, std::string directory,
                                       std::vector<std::string> others)
    : files_may_come_(!others.empty()),
      store_(files, std::move(directory), /*keep=*/1, /*servers=*/1, std::move(others)) {}

absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> CheckpointFollower::Next(uint64_t every,
                                                                             bool finally) {
  auto names = OldestFirst(store_);
  if (!names.ok()) return names.status();
  for (const CheckpointName& name : *names) {
    if (!IsDue(name, every)) continue;
    auto loaded = Load(name);
    if (!loaded.ok() || *loaded != nullptr) return loaded;
  }
  std::reverse(names->begin(), names->end());
  for (const CheckpointName& name : *names) {
    if (!finally || !IsDue(name, 0)) break;
    auto loaded = Load(name);
    if (!loaded.ok() || *loaded != nullptr) return loaded;
  }
  return std::unique_ptr<FollowedCheckpoint>();
}

bool CheckpointFollower::IsDue(const CheckpointName& name, uint64_t every) const {
  if (!given_.has_value()) return true;
  if (!(*given_ < name)) return false;
  return name.incarnation != given_->incarnation ||
         name.step.value() - given_->step.value() >= every;
}

// Null if the checkpoint is damaged or was removed.
absl::StatusOr<std::unique_ptr<FollowedCheckpoint>> CheckpointFollower::Load(
    const CheckpointName& name) {
  const bool damaged = damaged_.count(name) > 0;
  if (damaged && !files_may_come_) return std::unique_ptr<FollowedCheckpoint>();
  auto checkpoint = store_.Load(name);
  if (absl::IsDataLoss(checkpoint.status())) {
    // Replicas remove their stripes after the leader has removed its file.
    if (absl::IsNotFound(store_.CheckIsThere(name))) return std::unique_ptr<FollowedCheckpoint>();
    LOG_IF(ERROR, !damaged) << checkpoint.status().message() << "; it is skipped";
    damaged_.insert(name);
    return std::unique_ptr<FollowedCheckpoint>();
  }
  if (absl::IsNotFound(checkpoint.status())) return std::unique_ptr<FollowedCheckpoint>();
  if (!checkpoint.ok()) return checkpoint.status();
  damaged_.erase(name);
  given_ = name;
  return std::make_unique<FollowedCheckpoint>(
      FollowedCheckpoint{store_.PlaceOf(name), *std::move(checkpoint)});
}

absl::StatusOr<bool> CheckpointFollower::HasEnded() {
  const auto names = OldestFirst(store_);
  if (!names.ok()) return names.status();
  if (names->empty()) return false;
  // The server may have saved this checkpoint again when training ended, so it is read again.
  const auto checkpoint = store_.Load(names->back());
  if (absl::IsDataLoss(checkpoint.status()) || absl::IsNotFound(checkpoint.status())) return false;
  if (!checkpoint.ok()) return checkpoint.status();
  return checkpoint->ended;
}

}  // namespace sluice
