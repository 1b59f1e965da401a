// Named points on a server's way to the disk. A test names one, and the process kills itself there.
//
// A point is "<file>.<operation>.<when>".
// - <file> is the beginning of a file's name in the server's directory: journal, checkpoint, stripe
//   (of several servers), life (an incarnation's file) or kept (the durable step); see
//   server/durable/README.md.
// - <operation> is one of FileSystem's: create, write, sync, rename (<file> is the new name),
//   remove, or sync-directory (<file> is the file that the same thread changed last).
// - <when> is before or after. For write it may also be torn: half of the bytes are written.

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
  uint64_t times = 1;  // acts when it is reached for this time, counted from 1

  // Reads a text such as "journal.sync.before:3". INVALID_ARGUMENT quotes any other text.
  static absl::StatusOr<Failpoint> Parse(absl::string_view text);
};

// Passes all calls to another file system, and calls `act` when the point is reached. Safe to use
// from any thread.
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
  // Records that this thread has created, renamed or removed the file.
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
