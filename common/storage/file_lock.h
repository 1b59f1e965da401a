// A lock file, with which one process at a time takes a directory for itself.

#ifndef SLUICE_COMMON_STORAGE_FILE_LOCK_H_
#define SLUICE_COMMON_STORAGE_FILE_LOCK_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// The lock is held until this object is destroyed or the process ends in any way. It is a lock of
// an open file description (fcntl(2), F_OFD_SETLK), so that others can ask whether it is held
// without taking it.
class FileLock {
 public:
  // Locks the file at `path`, creates it if necessary, and writes `owner` into it, a line for
  // people. FAILED_PRECONDITION quotes the owner that holds the lock. Other errors are
  // FileSystem's.
  static absl::StatusOr<std::unique_ptr<FileLock>> Take(const std::string& path,
                                                        const std::string& owner);

  // Replaces the owner's line in the file.
  absl::Status NameOwner(const std::string& owner) const;

  // Whether any process, this one included, holds the lock; false if there is no such file. It does
  // not take the lock, so it disturbs nobody. UNAVAILABLE if the system cannot tell.
  static absl::StatusOr<bool> IsHeld(const std::string& path);

 private:
  FileLock(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const FileDescriptor file_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_STORAGE_FILE_LOCK_H_
