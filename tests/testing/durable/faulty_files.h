// A file system in memory that may lose everything that was not synced.
//
// A crash keeps everything that was synced. It keeps a random part of the rest: some of the names
// that were made, changed or removed since their directory was synced, and a part of each file's
// new bytes, in which a range may be zeros. File systems that promise no more than POSIX do the
// same (Pillai et al. 2014, "All File Systems Are Not Created Equal").

#ifndef SLUICE_TESTS_TESTING_DURABLE_FAULTY_FILES_H_
#define SLUICE_TESTS_TESTING_DURABLE_FAULTY_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/storage/file_system.h"

namespace sluice {

// Safe to use from any thread, except what BytesOf() returns. Paths are "directory/name".
class FaultyFiles final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;

  // Plays a crash and a restart of the machine; `random` decides what is lost.
  void Crash(std::mt19937_64& random);
  // The same, and nothing is kept that was not synced.
  void LoseUnsynced();

  // From now on, `operations` operations that change the disk succeed. All later ones fail, as on a
  // machine that has stopped. If absent, all succeed.
  void StopAfter(absl::optional<uint64_t> operations) {
    absl::MutexLock lock(&mu_);
    left_ = operations;
  }

  bool stopped() {
    absl::MutexLock lock(&mu_);
    return left_ == 0u;
  }

  // Sets how many bytes are free on the disk. An append that needs more writes what fits and fails.
  // If absent, the disk is never full.
  void SetRoom(absl::optional<uint64_t> bytes) {
    absl::MutexLock lock(&mu_);
    room_ = bytes;
  }

  // A file's bytes, which a test may read or damage.
  std::string& BytesOf(const std::string& path) {
    absl::MutexLock lock(&mu_);
    return names_.at(path)->bytes;
  }

 private:
  struct File {
    std::string bytes;
    std::string synced;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  class Writer;
  class Reader;

  // A change of one name: it now names this file, or none if null.
  using Change = std::pair<std::string, std::shared_ptr<File>>;

  absl::Status Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Apply(const Change& change, Names* names) const;
  static void Lose(File& file, std::mt19937_64& random);

  absl::Mutex mu_;  // guards the bytes of the files, too
  Names names_ ABSL_GUARDED_BY(mu_);
  Names synced_names_ ABSL_GUARDED_BY(mu_);
  // In order. The changes of one operation are lost together or kept together.
  std::vector<std::vector<Change>> unsynced_ ABSL_GUARDED_BY(mu_);
  absl::optional<uint64_t> left_ ABSL_GUARDED_BY(mu_);
  absl::optional<uint64_t> room_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_FAULTY_FILES_H_
