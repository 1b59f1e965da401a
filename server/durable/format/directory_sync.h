// Syncs the names in a directory until that fails once.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_DIRECTORY_SYNC_H_
#define SLUICE_SERVER_DURABLE_FORMAT_DIRECTORY_SYNC_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/storage/file_system.h"

namespace sluice {

// Externally synchronized.
class DirectorySync {
 public:
  // `files` outlives it.
  DirectorySync(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Returns when the names are on the disk. An error is final: every later call returns it and
  // does nothing, since nobody knows which names are on the disk (FileSystem::SyncDirectory).
  absl::Status Sync();

  // The error of a call that has failed, or OK.
  const absl::Status& error() const { return error_; }

 private:
  FileSystem& files_;
  const std::string directory_;
  absl::Status error_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_DIRECTORY_SYNC_H_
