// A file system of a few megabytes in memory, for tests of a full disk.

#ifndef SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_
#define SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// Used by one thread. The process must have called EnterOwnNamespaces() before.
class TinyDisk {
 public:
  // Mounts a tmpfs of `bytes` at `path`, which it creates if needed.
  static absl::StatusOr<std::unique_ptr<TinyDisk>> Mount(const std::string& path, uint64_t bytes);
  // Unmounts it, also if files on it are still open.
  ~TinyDisk();

  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file that takes all free bytes.
  absl::Status Fill();
  // Removes the file of Fill().
  absl::Status Free();

  // Changes the size to `bytes`. The files stay.
  absl::Status Resize(uint64_t bytes);

 private:
  explicit TinyDisk(std::string path) : path_(std::move(path)) {}

  std::string filler() const { return path_ + "/filler"; }

  const std::string path_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_
