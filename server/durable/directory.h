// The directory in which a server keeps what it must not lose.
//
//   LOCK                        held by the server that uses the directory
//   checkpoint-<life>-<step>…   see checkpoint_store.h
//   journal-<life>-<step>       see journal.h
//   life-<life>-<step>          a life of the server began, at that step; empty
//   kept                        the last step of the journal that workers may know of
//   reached                     the last step that was made; see reached_step.h
//
// Each life has a number of its own, the incarnation, which is never used again: it is on the disk
// before the server answers anybody.

#ifndef SLUICE_SERVER_DURABLE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_DIRECTORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/storage/file_lock.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/journal/journal.h"
#include "server/durable/journal/journal_replay.h"
#include "server/durable/reached_step.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

inline constexpr char kLockName[] = "LOCK";  // of the file

// What a server's end costs.
enum class Durability {
  kMemory,   // the steps since the last checkpoint
  kJournal,  // nothing that a worker was told of
};

struct DurableOptions {
  std::string directory;
  uint64_t checkpoint_every = 0;  // steps; 0: only when asked, at the beginning and at the end
  uint32_t keep_checkpoints = 3;
  Durability durability = Durability::kMemory;
};

// A checkpoint that was written.
struct SavedCheckpoint {
  std::string path;
  Step step;
};

using SaveCallback = std::function<void(absl::StatusOr<SavedCheckpoint>)>;

// Safe to use from any thread, but for what comes before StartJournal().
class DurableDirectory {
 public:
  // Takes the directory for this process, makes it if need be, and reads its checkpoints.
  // FAILED_PRECONDITION tells which server holds it; DATA_LOSS, that there is a state, and why none
  // of it can be restored. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<DurableDirectory>> Open(
      const DurableOptions& options, FileSystem& files = RealFileSystem());
  ~DurableDirectory();

  // The newest checkpoint of an earlier life; null if there was none, or it came to nothing.
  std::unique_ptr<const ShardCheckpoint> TakeRestored() { return std::move(restored_); }
  const ShardCheckpoint* restored() const { return restored_.get(); }
  // The steps that follow it in the journal, as ReplayJournal(). DATA_LOSS if that is not all of
  // which workers were told.
  absl::StatusOr<Step> Replay(const ShardCheckpoint& checkpoint,
                              const std::function<void(const JournaledStep&)>& replay);
  // Of the earlier lives, also of those that came to nothing; empty if none is known.
  const std::string& job_id() const { return job_id_; }
  // Earlier lives, but for those that the checkpoint knows of.
  const Lives& lives() const { return lives_; }

  // This life, which begins at `begin`, of that job.
  Incarnation incarnation() const { return incarnation_; }
  absl::Status BeginIncarnation(Step begin, const std::string& job_id);
  // The steps that an earlier life made beyond it, and which are lost; after BeginIncarnation().
  uint64_t lost_steps() const { return lost_steps_; }

  // A step was made, and nobody knows of it yet. One thread at a time.
  void NoteStep(Step step) { reached_.Note(step); }

  // The journal of this life, after BeginIncarnation(); null unless the options ask for one.
  // Without a `fatal`, the process ends.
  StepJournal* StartJournal(JournalListener listener);
  // Returns when all steps that were made are kept, or cannot be.
  void FlushJournal();

  uint64_t checkpoint_every() const { return options_.checkpoint_every; }

  // Saves a checkpoint on a thread of its own, then calls `done`, if any.
  void Save(std::shared_ptr<const ShardCheckpoint> checkpoint, SaveCallback done);

  // As above, unless the one before is still being saved; the log tells what became of it. In a
  // journal's life the first is tried until it is saved, since nothing is kept without it.
  void SaveUnlessBusy(std::shared_ptr<const ShardCheckpoint> checkpoint);

 private:
  DurableDirectory(const DurableOptions& options, FileSystem& files);

  std::string PathOf(const std::string& name) const { return options_.directory + "/" + name; }
  absl::Status ReadLives();
  absl::Status CheckHistory() const;
  bool HasBase() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return has_base_;
  }
  void SaveBase(std::shared_ptr<const ShardCheckpoint> checkpoint);
  absl::StatusOr<SavedCheckpoint> SaveNow(const ShardCheckpoint& checkpoint);
  bool WaitForBase() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteSaved();
  void RemoveOldSegments();
  void Kept(Step step) ABSL_LOCKS_EXCLUDED(mu_);
  void WriteKept(Step step);
  Step ReadKept() const;

  const DurableOptions options_;
  FileSystem& files_;
  std::unique_ptr<FileLock> lock_;
  CheckpointStore checkpoints_;  // in the end the background's alone
  std::unique_ptr<ShardCheckpoint> restored_;
  std::string job_id_;
  Lives lives_;
  Incarnation incarnation_;
  ReachedStep reached_;
  uint64_t lost_steps_ = 0;
  JournalListener listener_;
  mutable absl::Mutex mu_;
  bool has_base_ ABSL_GUARDED_BY(mu_) = false;  // a checkpoint from which steps can be made again
  Step kept_ ABSL_GUARDED_BY(mu_);              // in the journal
  std::atomic<int> saving_{0};
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  absl::CondVar end_;
  std::unique_ptr<Journal> journal_;  // null in memory mode
  SerialExecutor background_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_DIRECTORY_H_
