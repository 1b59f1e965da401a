// A file for rows of tables for which there is no memory.
//
// It is an extension of memory, and nothing else: what survives the process is in checkpoints and
// journals. So it has no name, the system removes it with the process, and nothing is synced.
//
// RocksDB was tried in its place. That of Debian 12 aborts the process when the disk is full, and
// it needs an index of its own beside the one that buckets have.

#ifndef SLUICE_SERVER_TABLES_DISK_DISK_FILE_H_
#define SLUICE_SERVER_TABLES_DISK_DISK_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice {

// Any thread may use it.
class DiskFile {
 public:
  // In `directory`, which is made if it is not there. Fails with a sentence.
  static absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& directory);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // The offset of so many bytes that nobody else has. They take no room before they are written.
  uint64_t Reserve(uint64_t bytes) { return end_.fetch_add(bytes, std::memory_order_relaxed); }
  // Fails with a sentence, in which case any part may have been written.
  absl::Status Write(uint64_t offset, absl::Span<const char> bytes);
  absl::Status Read(uint64_t offset, absl::Span<char> bytes) const;

 private:
  DiskFile(int file, std::string directory) : file_(file), directory_(std::move(directory)) {}

  const int file_;
  const std::string directory_;
  std::atomic<uint64_t> end_{0};
};

// Where the files of a server lie: each model of it has its own. Any thread may use it.
class RowDisk {
 public:
  // Tries whether files can be made in `directory`. Fails with a sentence.
  static absl::StatusOr<std::shared_ptr<RowDisk>> Open(const std::string& directory);

  absl::StatusOr<std::unique_ptr<DiskFile>> NewFile() const { return DiskFile::Create(directory_); }

 private:
  explicit RowDisk(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_DISK_DISK_FILE_H_
