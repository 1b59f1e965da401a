// The files of rows that one server saves, beside its checkpoints.
//
// The first checkpoint of an incarnation has a file with all rows. Each later one has a file with
// what has changed since the one before, until kRowFiles are needed to load a checkpoint; then all
// rows are saved again.

#ifndef SLUICE_SERVER_DURABLE_ROWS_ROWS_STORE_H_
#define SLUICE_SERVER_DURABLE_ROWS_ROWS_STORE_H_

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/numbered_name.h"
#include "common/storage/file_system.h"
#include "common/tensor/layout.h"
#include "server/durable/format/directory_sync.h"
#include "server/snapshots/row_snapshot.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// The most files of rows that one server has for a checkpoint.
inline constexpr size_t kRowFiles = 8;

// Of which checkpoint rows are saved.
struct RowsOf {
  std::string job_id;
  Incarnation incarnation;
  Step step;
  const Layout& layout;                // of the model
  const std::vector<RowSlots>& slots;  // of each table
};

// Externally synchronized.
class RowsStore {
 public:
  // `files` and `sync`, which syncs the directory, outlive the store.
  RowsStore(FileSystem& files, std::string directory, StripePlace place, DirectorySync& sync)
      : files_(files), directory_(std::move(directory)), place_(place), sync_(sync) {}

  RowsStore(const RowsStore&) = delete;
  RowsStore& operator=(const RowsStore&) = delete;

  // Saves the rows of a checkpoint, and returns the files that it needs, the oldest first, when all
  // are on the disk. If this step was saved before, it writes nothing. Errors are FileSystem's;
  // then the next call saves what has changed since the last that was saved.
  absl::StatusOr<std::vector<RowFile>> Save(const RowsOf& of, const RowSnapshot& rows);

  // Removes this server's files that no checkpoint of `keep` needs and that are older than the
  // newest of them, and those that an interrupted Save() has left. If more servers have saved a
  // checkpoint, each server removes its share. What cannot be removed stays until the next call,
  // and so does what may be needed by a file that cannot be read.
  void RemoveOthers(absl::Span<const IncarnationAndStep> keep) const;

 private:
  std::string PathOf(const RowsName& name) const { return directory_ + "/" + name.FileName(); }
  absl::StatusOr<absl::optional<Step>> BaseOf(const RowsName& name) const;
  void AddNeeded(RowsName name, const std::set<RowsName>& present,
                 std::set<RowsName>* needed) const;

  FileSystem& files_;
  const std::string directory_;
  const StripePlace place_;
  DirectorySync& sync_;
  Incarnation incarnation_;     // that has saved `saved_`
  std::vector<RowFile> saved_;  // what the last checkpoint needs
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ROWS_ROWS_STORE_H_
