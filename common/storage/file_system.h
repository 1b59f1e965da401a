// The file operations that server/durable needs. Tests replace them with a disk that loses bytes
// that were not synced, or keeps a part of them.
//
// Errors name the path and the system's message: RESOURCE_EXHAUSTED if the disk or the quota is
// full, NOT_FOUND if there is no such file, otherwise UNAVAILABLE.

#ifndef SLUICE_COMMON_STORAGE_FILE_SYSTEM_H_
#define SLUICE_COMMON_STORAGE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// Used by one thread.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Appends to the file. After an error, a part of `bytes` may have been written.
  virtual absl::Status Append(absl::string_view bytes) = 0;

  // Cuts the file to its first `size` bytes; later appends follow these.
  virtual absl::Status Truncate(uint64_t size) = 0;

  // Returns when the file's bytes are on the disk. After an error nobody knows which of them are,
  // so it must not be repeated (Rebello et al. 2020, "Can Applications Recover from fsync
  // Failures?").
  virtual absl::Status Sync() = 0;
};

// Safe to read from any thread.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  virtual uint64_t size() const = 0;

  // Fills `to` with the bytes from `offset` on. DATA_LOSS if the file is too short.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> to) const = 0;
};

// Safe to use from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates an empty file; an existing file is emptied.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // The names in a directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Returns when the names in the directory are on the disk. After an error nobody knows which of
  // them are, as with WritableFile::Sync(), so it must not be repeated either.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
};

// The machine's own file system.
FileSystem& RealFileSystem();

}  // namespace sluice

#endif  // SLUICE_COMMON_STORAGE_FILE_SYSTEM_H_
