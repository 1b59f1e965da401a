// The checkpoints in a directory: one file each, "checkpoint-<incarnation>-<step>.safetensors", and
// with several servers a file for each stripe (stripe_store.h), which are written before it, as are
// the files of rows of a model with tables (server/durable/rows).
//
// A file with such a name is complete: the store writes it under another name, syncs it, renames
// it, and syncs the directory (Pillai et al. 2014, "All File Systems Are Not Created Equal"). If
// the disk damages it later, Load() finds that.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/storage/file_system.h"
#include "server/durable/format/directory_sync.h"
#include "server/durable/rows/rows_store.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Externally synchronized.
class CheckpointStore {
 public:
  // The newest `keep` checkpoints stay, at least 1; while training is suspect, also the newest from
  // before. Of several servers, only the leader has a store. `files` outlives the store. `others`
  // are directories in which Load() looks for the files of other servers, too.
  CheckpointStore(FileSystem& files, std::string directory, uint32_t keep, uint32_t servers = 1,
                  std::vector<std::string> others = {})
      : files_(files),
        directory_(std::move(directory)),
        keep_(keep),
        servers_(servers),
        others_(std::move(others)),
        sync_(files, directory_),
        rows_(files, directory_, {}, sync_) {}

  // Saves a checkpoint, after the file of its rows, if it has any. Then it removes the oldest ones,
  // but not NewestBefore() its suspect_since, for as long as checkpoints that are saved have one.
  // Returns its path. After an error the others remain. If only the sync of the directory failed,
  // the new one is there, but a crash may lose it. That error is final: every later Save() returns
  // it and touches nothing.
  absl::StatusOr<std::string> Save(const ShardCheckpoint& checkpoint);
  // The same for one of several servers, after the stripes' files, which have these checksums.
  absl::StatusOr<std::string> SaveStriped(const ShardCheckpoint& checkpoint,
                                          const std::vector<uint64_t>& stripes);
  // Whether a sync of the directory has failed.
  bool sync_failed() const { return !sync_.error().ok(); }

  // Newest first.
  absl::StatusOr<std::vector<CheckpointName>> List() const;

  // The newest checkpoint from before the parameters became suspect. The losses of step s are those
  // of the parameters of step s - 1, so it is of step suspect_since - 2 or an earlier one. Absent
  // if there is none.
  absl::optional<CheckpointName> NewestBefore(Step suspect_since) const;

  // The newest of them that can be loaded; logs those that cannot. Absent if there is none.
  absl::optional<CheckpointName> LoadableBefore(Step suspect_since) const;
  // Where the files of one are, whether or not it is there.
  CheckpointPlace PlaceOf(const CheckpointName& name) const;
  // NOT_FOUND if that one is not there.
  absl::Status CheckIsThere(const CheckpointName& name) const;
  // Removes those that are newer than that one, the newest first.
  absl::Status RemoveNewer(const CheckpointName& name);

  // Loads a checkpoint with the values of this server's stripe; one server has the whole vector. It
  // does not matter how many servers have saved it. DATA_LOSS names the file and says what is wrong
  // with it.
  absl::StatusOr<ShardCheckpoint> Load(const CheckpointName& name) const;

  // Loads the newest that is not damaged; the log names the damaged ones. Null if there are no
  // checkpoints. DATA_LOSS if there are some and all are damaged. Any other error may be temporary:
  // it is returned, and no older checkpoint is loaded instead.
  absl::StatusOr<std::unique_ptr<ShardCheckpoint>> LoadNewest() const;

  // Removes the files that an interrupted Save() has left.
  absl::Status RemoveUnfinished();

 private:
  std::string PathOf(const std::string& file_name) const { return directory_ + "/" + file_name; }
  absl::StatusOr<std::string> Write(const ShardCheckpoint& checkpoint,
                                    absl::FunctionRef<absl::Status(WritableFile&)> write);
  absl::StatusOr<ShardCheckpoint> Read(const CheckpointPlace& place) const;
  void RemoveOld(absl::optional<Step> suspect_since);

  FileSystem& files_;
  const std::string directory_;
  const uint32_t keep_;
  const uint32_t servers_;
  const std::vector<std::string> others_;
  DirectorySync sync_;
  RowsStore rows_;  // of one server; several have theirs in StripeStore
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_CHECKPOINT_STORE_H_
