// Reads the steps that are in a directory's journal and not in its checkpoint.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/storage/file_system.h"
#include "server/durable/journal/journal.h"
#include "server/durable/journal/journal_format.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// The checkpoint after which a journal is read.
struct JournalStart {
  Incarnation incarnation;
  Step step;
  IncarnationBegins begins;           // the incarnations after the checkpoint's
  StripePlace place;                  // whose journal it is
  uint64_t elements = 0;              // of that stripe
  std::vector<uint32_t> widths = {};  // of the tables
};

// That of a checkpoint, for the journal of the leader of so many servers.
JournalStart StartAfter(const ShardCheckpoint& checkpoint, const IncarnationBegins& begins,
                        uint32_t servers);

// Reads the steps of a stripe's journal that follow a checkpoint, one after the other. A later
// incarnation began at some step and did not repeat what came after it, so the records after that
// step are skipped. A record that is cut or damaged ends its segment, and the log says so. For one
// thread.
class JournalCursor {
 public:
  // `files` outlives it. Errors are FileSystem's.
  static absl::StatusOr<std::unique_ptr<JournalCursor>> Open(FileSystem& files,
                                                             std::string directory,
                                                             JournalStart start);

  // The step after the last one; absent at the end. DATA_LOSS if a step is missing between two
  // segments. FAILED_PRECONDITION if this build cannot read the record.
  absl::StatusOr<absl::optional<JournaledStep>> Next();

  // The last step that was read; the checkpoint's before the first.
  Step reached() const { return reached_; }
  // The segment that is being read.
  const std::string& path() const { return path_; }

 private:
  JournalCursor(FileSystem& files, std::string directory, JournalStart start)
      : files_(files),
        directory_(std::move(directory)),
        start_(std::move(start)),
        reached_(start_.step) {}

  absl::Status OpenNext();
  absl::StatusOr<absl::optional<JournaledStep>> NextOfSegment();

  FileSystem& files_;
  const std::string directory_;
  const JournalStart start_;
  std::vector<SegmentName> segments_;  // not read yet, in reverse order
  Step reached_;
  std::string path_;
  absl::optional<Step> last_;  // of this segment that counts; absent: all count
  std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<JournalReader> reader_;  // null between two segments
};

// Makes a step of the journal again. The error says why it cannot be made.
using StepReplay = std::function<absl::Status(const JournaledStep&)>;

// Calls `replay`, in order, for each step that follows the checkpoint, up to `last`, and returns
// the last step. Errors are JournalCursor's, and FAILED_PRECONDITION if the record lacks terms of
// the step, or if `replay` returns that error.
absl::StatusOr<Step> ReplayJournal(FileSystem& files, const std::string& directory,
                                   const JournalStart& start, const ShardCheckpoint& checkpoint,
                                   Step last, const StepReplay& replay);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_JOURNAL_REPLAY_H_
