// The journal: every step is on the disk before a worker is told that its push is part of the step.
//
// The thread that makes a step appends it. The journal's own thread writes all steps that wait and
// syncs them together (group commit; Gray & Reuter 1993). The files are segments, named
// "journal-<incarnation>-<step>", each with the steps after that step. Each checkpoint begins a new
// segment, so that older segments can be removed. Each of several servers has a journal of its
// stripe, whose names end with "-<stripe>-of-<stripes>"; servers may share a directory.

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
#include "common/base/stop_flag.h"
#include "common/storage/file_system.h"
#include "common/tensor/float_buffer.h"
#include "server/state/server_span.h"
#include "server/state/step_journal.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// Ordered: by incarnation, then by step.
struct SegmentName {
  Incarnation incarnation;
  Step after;  // the step before the segment's first
  StripePlace place = {};

  std::string FileName() const;
  static absl::optional<SegmentName> Parse(absl::string_view file_name);
};

bool operator<(const SegmentName& a, const SegmentName& b);

// All segments in a directory, in order.
absl::StatusOr<std::vector<SegmentName>> SegmentsIn(FileSystem& files,
                                                    const std::string& directory);
// Those of one stripe.
absl::StatusOr<std::vector<SegmentName>> SegmentsIn(FileSystem& files, const std::string& directory,
                                                    StripePlace place);

// Removes the segments whose steps are all in the checkpoint of that incarnation and step, except
// the last segment. What cannot be removed stays until the next call.
void RemoveSegmentsUpTo(FileSystem& files, const std::string& directory, StripePlace place,
                        Incarnation incarnation, Step step);

// Ends the process with exit code 6, because only a new process can find out what is on the disk.
[[noreturn]] void EndUnsynced(const absl::Status& why);

// The journal's events. The journal's thread calls them, outside its locks.
struct JournalListener {
  std::function<void(Step)> durable;  // all steps up to this one are on the disk
  // With an error: the journal cannot write, for example because the disk is full, and tries again.
  // With OK: it can write again.
  std::function<void(const absl::Status&)> journal_error;
  // A sync of steps or of the directory's names failed. Nobody knows what is on the disk, and the
  // journal writes nothing more.
  std::function<void(const absl::Status&)> fatal;
  SpanListener on_span;  // kJournalSync: the steps that waited are synced together; may be null
};

// Append(), Flush() and BeginSegment() may be called from any thread.
class Journal final : public StepJournal {
 public:
  // The journal that one incarnation has of a stripe. Starts its thread. `files` outlives the
  // journal.
  Journal(FileSystem& files, std::string directory, Incarnation incarnation,
          JournalListener listener, StripePlace place = {});
  // Returns when all that was appended is durable, or cannot be written.
  ~Journal() override;

  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Copies a step with the sum of its gradients, and returns. Steps come in order. The copy stays
  // in memory until the step is durable. PushAdmission bounds the number of such copies.
  void Append(const StepRecord& record, absl::Span<const float> sum,
              absl::Span<const TableSums> rows) override ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when all that was appended is durable, or at once while it cannot be written.
  void Flush() ABSL_LOCKS_EXCLUDED(mu_);

  // The next step that is appended begins a new segment.
  void BeginSegment() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    Step step;
    std::string state;
    FloatBuffer sum;
    std::string rows;
    bool begins_segment = false;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mu_);
  std::deque<Entry> TakeEntries() ABSL_LOCKS_EXCLUDED(mu_);
  void FreeEntries(std::deque<Entry> entries) ABSL_LOCKS_EXCLUDED(mu_);
  void FinishBatch(bool durable) ABSL_LOCKS_EXCLUDED(mu_);
  bool Settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !journal_error_.ok() || (entries_.empty() && !busy_);
  }
  bool MakeDurable(const std::deque<Entry>& entries) ABSL_LOCKS_EXCLUDED(mu_);
  bool WriteWhenPossible(const Entry& entry) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Write(const Entry& entry);
  absl::Status OpenSegment(Step after);
  absl::Status SyncSteps();
  absl::Status NoteSync(const absl::Status& synced);
  void ReportJournalError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  bool WaitOutJournalError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  FileSystem& files_;
  const std::string directory_;
  const Incarnation incarnation_;
  const StripePlace place_;
  const JournalListener listener_;

  // Used by the journal's thread only.
  std::unique_ptr<WritableFile> segment_;
  uint64_t segment_bytes_ = 0;  // length of the complete records
  bool sync_failed_ = false;    // which is final

  absl::Mutex mu_;
  absl::CondVar work_;     // there is something to write, or the end
  absl::CondVar settled_;  // see Settled()
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);
  FloatBuffer spare_ ABSL_GUARDED_BY(mu_);
  bool begins_segment_ ABSL_GUARDED_BY(mu_) = true;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;  // nothing more is written
  absl::Status journal_error_ ABSL_GUARDED_BY(mu_);
  StopFlag end_;  // raised together with ends_
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_H_
