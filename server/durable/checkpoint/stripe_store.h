// One server's stripe of checkpoints, in a directory: the files that it saves, and what it takes
// from the files of any number of servers.
//
// Servers may share a directory, or have one each. A server reads the files that it needs from its
// own directory.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_STORE_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_STORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/stripe_reader.h"
#include "common/checkpoint/stripe_place.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/durable/checkpoint/stripe_writer.h"
#include "server/durable/format/directory_sync.h"
#include "server/durable/rows/rows_store.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// Saves and loads the stripe `place.stripe` of `place.stripes`. It is externally synchronized. Its
// methods take a time that grows with the stripe. `whole` is the layout of the whole vector.
class StripeStore {
 public:
  // `files` outlives it.
  StripeStore(FileSystem& files, std::string directory, StripePlace place)
      : files_(files),
        directory_(std::move(directory)),
        place_(place),
        sync_(files, directory_),
        rows_(files, directory_, place, sync_) {}

  // Saves the rows, if there are any. Writes the stripe's file under another name, syncs and
  // renames it, and syncs the directory. Returns the file's XXH3-64. Errors are FileSystem's. If
  // the sync of the directory fails, that is final: every later Save() returns the error and
  // touches nothing.
  absl::StatusOr<uint64_t> Save(const std::string& job_id, const CheckpointName& checkpoint,
                                const Layout& whole, const StripeCheckpoint& stripe);

  // Returns what the stripe has of a checkpoint (LoadStripe()).
  absl::StatusOr<StripeCheckpoint> Load(
      const CheckpointSource& source, const Layout& whole,
      const std::function<void(uint64_t bytes)>& on_read = nullptr) const;

  // Removes this server's files of stripes and rows that belong to no checkpoint of `keep` and are
  // older than the newest of them, and those that an interrupted Save() has left. If more servers
  // have saved a checkpoint, each server removes its share. What cannot be removed stays until the
  // next call.
  void RemoveOthers(absl::Span<const CheckpointName> keep) const;

 private:
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

  FileSystem& files_;
  const std::string directory_;
  const StripePlace place_;
  DirectorySync sync_;
  RowsStore rows_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_STORE_H_
