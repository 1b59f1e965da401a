// The checkpoints in a directory: one file each, "checkpoint-<incarnation>-<step>.safetensors".
//
// A file of that name is whole: it is written under another, synced, and renamed, and the
// directory is synced, before anybody relies on it (Pillai et al. 2014, "All File Systems Are Not
// Created Equal"). If it is damaged nevertheless, that is found when it is read.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/storage/file_system.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// In order: the newest is the largest.
struct CheckpointName {
  Incarnation incarnation;
  Step step;

  std::string FileName() const;
  // Absent if it is none.
  static absl::optional<CheckpointName> Parse(absl::string_view file_name);
};

bool operator<(const CheckpointName& a, const CheckpointName& b);

// Externally synchronized.
class CheckpointStore {
 public:
  // Keeps the newest `keep`, at least 1. `files` outlives the store.
  CheckpointStore(FileSystem& files, std::string directory, uint32_t keep)
      : files_(files), directory_(std::move(directory)), keep_(keep) {}

  // Saves one, then removes those that are too many. Returns its path. After an error it is not
  // there, and the others are.
  absl::StatusOr<std::string> Save(const ShardCheckpoint& checkpoint);

  // Newest first.
  absl::StatusOr<std::vector<CheckpointName>> List() const;

  // DATA_LOSS names the file and what is wrong with it.
  absl::StatusOr<ShardCheckpoint> Load(const CheckpointName& name) const;

  // The newest that is whole; the log names those that are not. Null if there are none at all.
  // DATA_LOSS if there are, and none can be loaded.
  absl::StatusOr<std::unique_ptr<ShardCheckpoint>> LoadNewest() const;

  // Removes what an interrupted Save() left.
  absl::Status RemoveUnfinished();

 private:
  std::string PathOf(const std::string& file_name) const { return directory_ + "/" + file_name; }
  absl::Status Write(const ShardCheckpoint& checkpoint, const std::string& path);
  void RemoveOld();

  FileSystem& files_;
  const std::string directory_;
  const uint32_t keep_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_
