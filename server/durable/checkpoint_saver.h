// Saves the checkpoints of a server alone, or of the leader of several, one after the other on a
// thread of its own. Used by DurableDirectory.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_SAVER_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_SAVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/base/stop_flag.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "server/durable/durable_options.h"
#include "server/durable/durable_steps.h"
#include "server/durable/journal/journal.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// A checkpoint that is on the disk.
struct SavedCheckpoint {
  std::string path;
  Step step;
};

// The newest checkpoint that a directory has saved.
struct LastSaved {
  Step step;
  absl::Time at;  // by RealClock()
};

using SaveCallback = std::function<void(absl::StatusOr<SavedCheckpoint>)>;
// Gets the checkpoints that are whole. Called by the thread that saves.
using KeepListener = std::function<void(const std::vector<CheckpointName>&)>;

// Any thread may call what stands after TellOthers().
class CheckpointSaver {
 public:
  // All outlive it. Only the saver's thread uses `checkpoints` from the first Save() on.
  CheckpointSaver(FileSystem& files, const DurableOptions& options, CheckpointStore& checkpoints,
                  DurableSteps& steps);
  ~CheckpointSaver() { end_.Raise(); }

  // From now on a checkpoint begins a new segment of the journal, and the segments that no
  // checkpoint needs are removed. A failed sync of a checkpoint's name is told to `fatal`. The
  // journal stays until GoBackTo() or until the saver is gone. Before the checkpoints that are to
  // be its base.
  void Join(Journal& journal, std::function<void(const absl::Status&)> fatal);
  // With several servers: `keep` tells the others which checkpoints are whole. It is called before
  // this returns, if there are any, and after each checkpoint that is saved. `take_another` is
  // called if the journal needs a first checkpoint and the last one could not be saved. Before the
  // first SaveUnlessBusy().
  void TellOthers(KeepListener keep, std::function<void()> take_another);

  // Saves a checkpoint on the saver's thread, which then calls `done`, if any.
  void Save(std::shared_ptr<const ShardCheckpoint> checkpoint, SaveCallback done);
  // Does the same, unless an earlier checkpoint is still being saved. The log says whether it was
  // saved. With a journal, the first checkpoint is tried until it succeeds, because no step is
  // durable without it, and a full disk may have space again.
  void SaveUnlessBusy(std::shared_ptr<const ShardCheckpoint> checkpoint);
  std::string PathOf(const CheckpointName& checkpoint) const {
    return options_.directory + "/" + checkpoint.FileName();
  }
  // Absent if this object has saved none.
  absl::optional<LastSaved> last_saved() const ABSL_LOCKS_EXCLUDED(mu_);

  // ---- These wait for running saves.

  // The path of the newest checkpoint from before `suspect_since`, which is a ShardCheckpoint's;
  // empty if there is none.
  std::string NewestBefore(Step suspect_since);
  // The newest from before `suspect_since` that can be loaded; absent if there is none.
  absl::optional<CheckpointName> FindWayBack(Step suspect_since);
  // Calls `remove_journal`, then removes every checkpoint newer than `checkpoint`. The caller saves
  // nothing afterwards. NOT_FOUND, and nothing happens, if `checkpoint` is not there any more.
  // Other errors are those of FileSystem and `remove_journal`.
  absl::Status GoBackTo(const CheckpointName& checkpoint,
                        absl::FunctionRef<absl::Status()> remove_journal);

 private:
  void RunOnExecutor(absl::FunctionRef<void()> task);
  void SaveBase(std::shared_ptr<const ShardCheckpoint> checkpoint);
  bool WaitForBase();
  absl::StatusOr<SavedCheckpoint> SaveNow(const ShardCheckpoint& checkpoint);
  absl::StatusOr<std::string> SaveStriped(const ShardCheckpoint& checkpoint);
  void KeepWhole();
  void RemoveOldSegments();

  FileSystem& files_;
  const DurableOptions& options_;
  CheckpointStore& checkpoints_;
  DurableSteps& steps_;
  StripeStore stripes_;                             // of several servers: this one's
  Journal* journal_ = nullptr;                      // null in memory mode
  std::function<void(const absl::Status&)> fatal_;  // with a journal
  KeepListener tell_others_;                        // or null
  std::function<void()> take_another_;              // or null
  std::atomic<int> saving_{0};
  StopFlag end_;
  mutable absl::Mutex mu_;
  absl::optional<LastSaved> last_saved_ ABSL_GUARDED_BY(mu_);
  SerialExecutor executor_{"sluice-save"};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_SAVER_H_
