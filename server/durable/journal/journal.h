// The journal: every step is on the disk before anybody is told that a push is part of it.
//
// Steps are appended by the thread that makes them and written by a thread of the journal's own,
// which writes all that wait and syncs them together (group commit; Gray & Reuter 1993). The files
// are segments, "journal-<life>-<step>", each with the steps that follow its name's; a new one
// begins with each checkpoint, so that those before it can be removed.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/storage/file_system.h"
#include "common/tensor/float_buffer.h"
#include "server/state/step_journal.h"

namespace sluice {

// In order.
struct SegmentName {
  Incarnation incarnation;
  Step after;  // the step before its first

  std::string FileName() const;
  static absl::optional<SegmentName> Parse(absl::string_view file_name);
};

bool operator<(const SegmentName& a, const SegmentName& b);

// Those in a directory, in order.
absl::StatusOr<std::vector<SegmentName>> SegmentsIn(FileSystem& files,
                                                    const std::string& directory);

// What the journal's owner is told; on the journal's thread, outside its locks.
struct JournalListener {
  std::function<void(Step)> kept;  // all steps up to this are on the disk
  // It cannot write, for example because the disk is full, and tries again; OK: it can again.
  std::function<void(const absl::Status&)> trouble;
  // A sync failed: nobody knows what is on the disk, and no more is written.
  std::function<void(const absl::Status&)> fatal;
};

class Journal final : public StepJournal {
 public:
  // Of one life of the server. `files` outlives it.
  Journal(FileSystem& files, std::string directory, Incarnation incarnation,
          JournalListener listener);
  // Ends when all that was appended is kept, or cannot be written.
  ~Journal() override;

  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void Append(const StepRecord& record, absl::Span<const float> sum) override
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when all that was appended is kept; or, at once, while it cannot be written.
  void Flush() ABSL_LOCKS_EXCLUDED(mu_);

  // The next step begins a segment.
  void BeginSegment() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    Step step;
    std::string state;
    FloatBuffer sum;
    bool begins_segment = false;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mu_);
  bool Settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !journal_error_.ok() || (entries_.empty() && !busy_);
  }
  bool Keep(std::deque<Entry>& entries) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Write(const Entry& entry);
  absl::Status OpenSegment(Step after);
  void ReportJournalError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  bool WaitOutJournalError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  FileSystem& files_;
  const std::string directory_;
  const Incarnation incarnation_;
  const JournalListener listener_;

  // Of the journal's thread.
  std::unique_ptr<WritableFile> segment_;
  uint64_t segment_bytes_ = 0;  // of whole records

  absl::Mutex mu_;
  absl::CondVar work_;     // there is something to write, or the end
  absl::CondVar settled_;  // see Settled()
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);
  FloatBuffer spare_ ABSL_GUARDED_BY(mu_);
  bool begins_segment_ ABSL_GUARDED_BY(mu_) = true;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;  // no more is written
  absl::Status journal_error_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_H_
