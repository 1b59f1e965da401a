// The journal on the disk of one server, in memory. It survives the server's process. What was not
// synced may be lost when the server is killed.

#ifndef SLUICE_TESTS_SIMULATION_DISK_JOURNAL_H_
#define SLUICE_TESTS_SIMULATION_DISK_JOURNAL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/replica/replica_commands.h"
#include "server/state/step_journal.h"
#include "server/state/table_sums.h"
#include "tests/testing/vectors.h"

namespace sluice {

// What a file keeps of a worker's record.
SessionRecord SavedWorker(const SessionRecord& worker);

// Has the rules of server/durable/journal, and no files. One thread uses it.
class DiskJournal {
 public:
  struct Record {
    StepRecord step;
    Values sum;
    std::vector<TableSums> rows;
  };
  using Listener = std::function<void(const JournalReport&)>;

  // A process begins to write. What it appends waits until Sync(). The listener is called until the
  // result is destroyed; the journal outlives it.
  std::unique_ptr<StepJournal> Start(Listener listener);

  // The number of steps that wait.
  size_t waiting() const { return records_.size() - synced_; }
  // Writes the first `most` of them, and tells the listener. Nothing happens if the disk is full.
  void Sync(size_t most);
  // There is no space from now on, or there is again.
  void SetFull(bool full) { full_ = full; }
  bool full() const { return full_; }
  // Tells the listener, once, that steps wait and the disk is full.
  void TellIfStopped();
  // The process ends. Of the steps that wait, the first `kept` are on the disk.
  void End(size_t kept);

  // The last step that the running process has written; 0 if there is none.
  Step durable() const { return durable_; }
  // The steps that follow a checkpoint, in order; the records live until the next change. A later
  // incarnation began at some step: what an earlier one made after it does not count. DATA_LOSS if
  // a step is missing between two others.
  absl::StatusOr<std::vector<const Record*>> Following(const CheckpointKey& checkpoint,
                                                       const IncarnationBegins& begins) const;
  // Removes what is part of that checkpoint.
  void RemoveUpTo(const CheckpointKey& checkpoint);

 private:
  class Writer;

  void Tell(const absl::Status& stopped);

  std::deque<Record> records_;  // of all incarnations
  size_t synced_ = 0;           // the first of records_
  Step durable_;
  bool full_ = false;
  bool stopped_ = false;  // and the listener knows
  Listener listener_;     // null if no process writes
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_DISK_JOURNAL_H_
