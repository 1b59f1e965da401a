// Named points on a server's way to the disk. A test names one, and the process kills itself there.
//
// A point is "<file>.<operation>.<when>". The file is one of what server/durable/README.md lists:
// journal, checkpoint, life or kept. The operations are FileSystem's: create, write, sync, rename
// (the file is named by its new name), remove, and sync-directory (the file is the one that the
// same thread changed last). `When` is before or after. For write it may also be torn, which means
// that half of the bytes are written.

#ifndef SLUICE_TESTS_TESTING_DURABLE_FAILPOINTS_H_
#define SLUICE_TESTS_TESTING_DURABLE_FAILPOINTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/storage/file_system.h"

namespace sluice {

struct Failpoint {
  std::string name;
  uint64_t times = 1;  // that it is reached until it acts

  // Of "journal.sync.before:3". INVALID_ARGUMENT says what else was found.
  static absl::StatusOr<Failpoint> Parse(absl::string_view text);
};

// Another file system, unchanged, until the point is reached. Safe to use from any thread.
class FailpointFiles final : public FileSystem {
 public:
  // `act` is called once. `files` outlives this.
  FailpointFiles(FileSystem& files, Failpoint point, std::function<void()> act)
      : files_(files), point_(std::move(point)), act_(std::move(act)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;

 private:
  class Writer;

  // Returns whether the point is one of that file and operation.
  bool IsAt(absl::string_view file, absl::string_view operation, absl::string_view when) const;
  void Reach(absl::string_view file, absl::string_view operation, absl::string_view when)
      ABSL_LOCKS_EXCLUDED(mu_);
  // This thread has changed that file's name.
  void NoteChange(const std::string& file) ABSL_LOCKS_EXCLUDED(mu_);

  FileSystem& files_;
  const Failpoint point_;
  const std::function<void()> act_;
  absl::Mutex mu_;
  uint64_t reached_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::thread::id, std::string> changed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_FAILPOINTS_H_
