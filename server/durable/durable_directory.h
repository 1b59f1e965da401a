// The directory in which a server keeps what it must not lose.
//
//   LOCK                             held by the server that uses the directory
//   checkpoint-<life>-<step>.…       see checkpoint_store.h
//   life-<life>-<step>               a life of the server began, at that step; empty
//
// Each life has a number of its own, the incarnation, which is never used again: it is on the disk
// before the server answers anybody.

#ifndef SLUICE_SERVER_DURABLE_DURABLE_DIRECTORY_H_
#define SLUICE_SERVER_DURABLE_DURABLE_DIRECTORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/background.h"
#include "common/file_lock.h"
#include "common/file_system.h"
#include "server/durable/checkpoint_store.h"
#include "server/shard_image.h"

namespace sluice {

struct DurableOptions {
  std::string directory;
  uint64_t checkpoint_every = 0;  // steps; 0: only when asked, and at the end
  uint32_t keep_checkpoints = 3;
};

// A checkpoint that was written.
struct SavedCheckpoint {
  std::string path;
  Step step;
};

using SaveCallback = std::function<void(absl::StatusOr<SavedCheckpoint>)>;

// Safe to use from any thread, but for its making.
class DurableDirectory {
 public:
  // Takes the directory for this process, makes it if need be, and reads what is in it.
  // FAILED_PRECONDITION tells which server holds it; DATA_LOSS, that there is a state, and why none
  // of it can be restored. `files` outlives it.
  static absl::StatusOr<std::unique_ptr<DurableDirectory>> Open(
      const DurableOptions& options, FileSystem& files = RealFileSystem());

  // Where the earlier life ended; null if there was none, or it came to nothing.
  std::unique_ptr<const ShardImage> TakeRestored() { return std::move(restored_); }
  const ShardImage* restored() const { return restored_.get(); }

  // Of this life.
  Incarnation incarnation() const { return incarnation_; }

  uint64_t checkpoint_every() const { return options_.checkpoint_every; }

  // Saves a checkpoint on a thread of its own, then calls `done`, if any.
  void Save(std::shared_ptr<const ShardImage> image, SaveCallback done);

  // As above, unless the one before is still being saved; the log tells what became of it.
  void SaveUnlessBusy(std::shared_ptr<const ShardImage> image);

 private:
  DurableDirectory(const DurableOptions& options, FileSystem& files);

  absl::Status Restore();
  absl::Status BeginLife();
  absl::StatusOr<SavedCheckpoint> SaveNow(const ShardImage& image);

  const DurableOptions options_;
  FileSystem& files_;
  std::unique_ptr<FileLock> lock_;
  CheckpointStore checkpoints_;  // after Open() the background's alone
  std::unique_ptr<ShardImage> restored_;
  Incarnation incarnation_;
  std::atomic<int> saving_{0};
  Background background_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_DURABLE_DIRECTORY_H_
