// A directory that one process at a time may use.

#ifndef SLUICE_COMMON_FILE_LOCK_H_
#define SLUICE_COMMON_FILE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace sluice {

// Held until it is destroyed or its process ends, however it ends.
class FileLock {
 public:
  // Locks the file at `path`, which is made if need be, and writes `owner` into it: a line for
  // people. FAILED_PRECONDITION tells what the process that holds it wrote; other errors are as
  // FileSystem's.
  static absl::StatusOr<std::unique_ptr<FileLock>> Take(const std::string& path,
                                                        const std::string& owner);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}

  const FileDescriptor file_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_FILE_LOCK_H_
