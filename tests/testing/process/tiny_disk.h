// A file system of a few megabytes in memory, for tests of a full disk.

#ifndef SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_
#define SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// For one thread, of a process that has entered mounts of its own (EnterOwnNamespaces).
class TinyDisk {
 public:
  // Mounts a tmpfs at `path`, which is made if need be.
  static absl::StatusOr<std::unique_ptr<TinyDisk>> Mount(const std::string& path, uint64_t bytes);
  // Unmounts it; nobody may use it any more.
  ~TinyDisk();

  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  const std::string& path() const { return path_; }

  // Puts a file there that leaves no room.
  absl::Status Fill();
  // Removes it.
  absl::Status Free();

  // What is there stays.
  absl::Status Resize(uint64_t bytes);

 private:
  explicit TinyDisk(std::string path) : path_(std::move(path)) {}

  std::string filler() const { return path_ + "/filler"; }

  const std::string path_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_TINY_DISK_H_
