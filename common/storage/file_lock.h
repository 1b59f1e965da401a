// A directory that one process at a time may use.

#ifndef SLUICE_COMMON_STORAGE_FILE_LOCK_H_
#define SLUICE_COMMON_STORAGE_FILE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Held until it is destroyed or its process ends, however it ends. An open file description's lock
// (fcntl(2), F_OFD_SETLK), so that others can ask whether it is held without taking it.
class FileLock {
 public:
  // Locks the file at `path`, which is made if need be, and writes `owner` into it: a line for
  // people. FAILED_PRECONDITION tells what the process that holds it wrote; other errors are as
  // FileSystem's.
  static absl::StatusOr<std::unique_ptr<FileLock>> Take(const std::string& path,
                                                        const std::string& owner);

  // Whether a process holds it, this one too; false if there is no such file. Takes nothing, so
  // that nobody is refused because of it. UNAVAILABLE if that cannot be found out.
  static absl::StatusOr<bool> IsHeld(const std::string& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}

  const FileDescriptor file_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_STORAGE_FILE_LOCK_H_
