// A file system that asks a test before each operation that changes the disk. The test may let the
// operation happen, refuse it with an error, or make it wait.

#ifndef SLUICE_TESTS_TESTING_DURABLE_HOOKED_FILES_H_
#define SLUICE_TESTS_TESTING_DURABLE_HOOKED_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"

namespace sluice {

enum class FileOperation { kCreate, kAppend, kTruncate, kSync, kRename, kRemove, kSyncDirectory };

// Called before an operation, on the thread that wants it, with the file's path (of a rename: the
// new one; of a sync of names: the directory's). After an error the operation does not happen, and
// its caller gets the error.
using FileHook = std::function<absl::Status(FileOperation operation, const std::string& path)>;

// Passes all calls to another file system. Safe to use from any thread, if the hook is.
class HookedFiles final : public FileSystem {
 public:
  // `files` outlives this.
  HookedFiles(FileSystem& files, FileHook hook) : files_(files), hook_(std::move(hook)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;

 private:
  class Writer;

  FileSystem& files_;
  const FileHook hook_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_HOOKED_FILES_H_
