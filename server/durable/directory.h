// The directory in which the leader, or the only server, saves its state: checkpoints, and a
// journal if asked for. StripeDirectory is that of another server, which may be the same one on the
// disk.
//
//   LOCK                              locked by the leader, which uses the directory
//   checkpoint-<incarnation>-<step>…  see checkpoint_store.h
//   constants.safetensors             the model's constants; see constant_store.h
//   rows-<incarnation>-<step>…        the rows of tables; see rows/rows_store.h
//   journal-<incarnation>-<step>…     see journal/journal.h
//   life-<incarnation>-<step>         that incarnation began at that step; contains the job's id
//   kept                              the last durable step that workers may have been told of
//   reached                           the last step that was made; see reached_step.h
//   page-history                      what the live page shows of the past; server/web writes it
//
// With several servers, each also has:
//
//   LOCK-<i>                          locked by server i; the leader has LOCK
//   stripe-<incarnation>-<step>-…     its stripe of a checkpoint; see checkpoint/stripe_store.h
//
// and the names of its files of rows and of its journal end with its number (rows-…-<i>-of-<S>).
// An ending ".unfinished", or ".new" of `kept`, marks a file that is being written.
//
// Each start of a server is an incarnation with a new number, which is on the disk before the
// server answers anybody. Recover() connects a shard with a directory. The directory owns the lock,
// the journal, and the saver of checkpoints.

#ifndef SLUICE_SERVER_DURABLE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_lock.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint_saver.h"
#include "server/durable/durable_options.h"
#include "server/durable/durable_steps.h"
#include "server/durable/journal/journal.h"
#include "server/durable/journal/journal_replay.h"
#include "server/durable/one_job.h"
#include "server/durable/reached_step.h"
#include "server/shard/replica_checkpoints.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// One thread calls StartJournal() and what stands before it here, except CheckOther() and
// NoteStep(). Any thread may call CheckOther(), and what stands after StartJournal().
class DurableDirectory {
 public:
  // Locks the directory, creates it if necessary, and loads its newest checkpoint. It changes
  // nothing else. FAILED_PRECONDITION names the server that holds the directory. DATA_LOSS says why
  // a state that is there cannot be restored, or that the files are not this server's. Other errors
  // are FileSystem's. `files` outlives the directory.
  static absl::StatusOr<std::unique_ptr<DurableDirectory>> Open(
      const DurableOptions& options, FileSystem& files = RealFileSystem());

  // Returns OK if another server of the job may have these files in its directory: see
  // CheckOneJob().
  absl::Status CheckOther(uint32_t server, const FoundFiles& found) const {
    return CheckOneJob(first_, server, found);
  }
  // Removes files that earlier incarnations have not finished, and files that nobody needs any
  // more. Call it before anything is written. Errors are FileSystem's.
  absl::Status RemoveLeftovers();

  // The newest checkpoint of the earlier incarnations; null if there is none.
  std::unique_ptr<const ShardCheckpoint> TakeRestored() { return std::move(restored_); }
  const ShardCheckpoint* restored() const { return restored_.get(); }
  // Replays the steps that follow the checkpoint in the journal, and returns the last; see
  // ReplayJournal(). `others`: how far the journals of the other servers go; absent with one
  // server. DATA_LOSS if a step is missing that workers were told of. FAILED_PRECONDITION if the
  // steps are in the journals of another number of servers.
  absl::StatusOr<Step> Replay(const ShardCheckpoint& checkpoint,
                              const absl::optional<LeastJournaled>& others,
                              const StepReplay& replay);
  // The job of the earlier incarnations, also of those without a checkpoint; empty if unknown.
  const std::string& job_id() const { return job_id_; }
  // The earlier incarnations that the checkpoint does not list.
  const IncarnationBegins& earlier_incarnations() const { return earlier_incarnations_; }

  // The number of this incarnation.
  Incarnation incarnation() const { return incarnation_; }
  // Writes down that this incarnation begins at step `begin`, and its job. Errors are FileSystem's,
  // and DATA_LOSS if there was a journal but its checkpoint is gone.
  absl::Status BeginIncarnation(Step begin, const std::string& job_id);
  // The number of steps after `begin` that an earlier incarnation had made. They are lost.
  uint64_t lost_steps() const { return lost_steps_; }

  // Notes that a step was made, before anybody is told of it. For kMemory. One thread at a time.
  void NoteStep(Step step) { reached_.Note(step); }

  // Starts the journal of this incarnation; null for kMemory. From then on a failed sync of a
  // checkpoint's name is fatal, too. If listener.fatal is null, it ends the process with exit
  // code 6. With several servers the listener hears of steps that are durable on all of them, and
  // of a server that cannot write: if there are more, of the one with the lowest number.
  StepJournal* StartJournal(JournalListener listener);
  // The journal of another server of the job has changed; `server` is 1 or more.
  void NoteJournal(uint32_t server, Step durable, const absl::Status& stopped);
  // Returns when all steps that were made are durable, or at once while they cannot be written.
  void FlushJournal();
  uint64_t checkpoint_every() const { return options_.checkpoint_every; }
  bool journals() const { return options_.durability == Durability::kJournal; }

  // Saves checkpoints here.
  CheckpointSaver& saver() { return saver_; }
  const CheckpointSaver& saver() const { return saver_; }
  // Waits for running saves. Then removes the journal and every checkpoint newer than `checkpoint`,
  // from which the next server in this directory continues. The caller saves nothing afterwards.
  // NOT_FOUND, and nothing is removed, if `checkpoint` is not there any more. Other errors are
  // FileSystem's; then the next server continues from the newest checkpoint that is left.
  absl::Status GoBackTo(const CheckpointName& checkpoint);

 private:
  DurableDirectory(const DurableOptions& options, FileSystem& files);

  absl::Status ReadIncarnations();
  absl::Status CheckFiles();
  absl::Status RemoveJournal();
  std::string PathOf(const std::string& name) const { return options_.directory + "/" + name; }

  const DurableOptions options_;
  FileSystem& files_;
  std::unique_ptr<FileLock> lock_;
  CheckpointStore checkpoints_;  // after RemoveLeftovers(), only the saver uses it
  std::unique_ptr<ShardCheckpoint> restored_;
  std::string job_id_;
  FirstDirectory first_;
  std::vector<std::string> old_begins_;  // files that are not needed any more
  IncarnationBegins earlier_incarnations_;
  Incarnation incarnation_;
  ReachedStep reached_;
  uint64_t lost_steps_ = 0;
  DurableSteps steps_;
  std::unique_ptr<Journal> journal_;  // null in memory mode
  CheckpointSaver saver_;             // ends before what it uses
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_DIRECTORY_H_
