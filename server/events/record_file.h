// A file to which a running job appends records, such as lines. Whoever adds a record never waits
// for the disk: a thread of its own writes. If the disk is too slow or full, records are lost, and
// counted.

#ifndef SLUICE_SERVER_EVENTS_RECORD_FILE_H_
#define SLUICE_SERVER_EVENTS_RECORD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/executor.h"

namespace sluice {

// Appends all of `bytes`, or after an error nothing of it.
using AppendBytes = std::function<absl::Status(absl::string_view bytes)>;

// Returns what appends to the regular file at `path`, which is created if it is missing.
// INVALID_ARGUMENT, with the path and the reason, if that is impossible.
absl::StatusOr<AppendBytes> OpenToAppend(const std::string& path);

// Add(), TakeLost() and Flush() are called by one thread.
class RecordFile {
 public:
  static constexpr size_t kMostQueued = 4 << 20;  // bytes that wait to be written

  // `name` is how the log calls the file. `thread` writes; it is destroyed, and so drained, first.
  RecordFile(std::string name, AppendBytes append, std::unique_ptr<Executor> thread)
      : name_(std::move(name)), append_(std::move(append)), thread_(std::move(thread)) {}

  // Queues a record, or loses it if too much waits. If it is lost, it counts as `weight` records.
  void Add(std::string record, uint64_t weight = 1) ABSL_LOCKS_EXCLUDED(mu_);

  // How many records were lost since this was called last.
  uint64_t TakeLost() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when all queued records are written or lost.
  void Flush() { thread_->Drain(); }

  const std::string& name() const { return name_; }

 private:
  void Write(const std::string& record, uint64_t weight) ABSL_LOCKS_EXCLUDED(mu_);
  void Lose(uint64_t weight, absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;
  const AppendBytes append_;
  absl::Mutex mu_;
  size_t queued_ ABSL_GUARDED_BY(mu_) = 0;   // bytes
  uint64_t lost_ ABSL_GUARDED_BY(mu_) = 0;   // records
  bool loses_ ABSL_GUARDED_BY(mu_) = false;  // the latest record was lost: the log has said why
  std::unique_ptr<Executor> thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_RECORD_FILE_H_
