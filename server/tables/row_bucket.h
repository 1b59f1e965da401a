// One bucket of a table: makes steps on its rows, and reads them for snapshots. What is stored
// after the latest step is in BucketRows; what older snapshots need of steps before is in
// RowHistory.

#ifndef SLUICE_SERVER_TABLES_ROW_BUCKET_H_
#define SLUICE_SERVER_TABLES_ROW_BUCKET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/checksum.h"
#include "server/snapshots/row_snapshot.h"
#include "server/tables/bucket_rows.h"
#include "server/tables/bucket_sums.h"
#include "server/tables/disk/disk_records.h"
#include "server/tables/past_rows.h"
#include "server/tables/row_computer.h"
#include "server/tables/row_history.h"
#include "server/tables/row_memory.h"
#include "server/tables/row_shape.h"

namespace sluice {

// Rows whose memory is asked for ahead of their use.
inline constexpr size_t kFetchedAhead = 32;

// How old some rows are together, in steps.
struct RowAges {
  uint64_t rows = 0;
  uint64_t sum = 0;
};

// Any thread may read. One thread at a time makes steps.
class RowBucket {
 public:
  // `key` names the bucket in the history. All arguments outlive it.
  RowBucket(const RowShape& shape, uint64_t key, const RowHistory& history, RowMemory& memory,
            RowCounts& counts);
  RowBucket(const RowBucket&) = delete;
  RowBucket& operator=(const RowBucket&) = delete;

  // ---- The thread that makes steps ----

  // Takes a row or waiting id. If it is there, it is replaced.
  void Load(const StoredRow& row) ABSL_LOCKS_EXCLUDED(mu_);
  // Finds the rows of `sums` for the step, and sets those of `past`, which has as many, and
  // elements for all. Changes no row, but takes those of the step from the disk.
  void Touch(const BucketSums& sums, PastRows& past) ABSL_LOCKS_EXCLUDED(mu_);
  // Computes what the step makes of the rows that Touch() has found. Returns the lowest id of a row
  // that would not be finite. Changes no row.
  absl::optional<RowId> Compute(const BucketSums& sums, const RowRule& rule, PastRows& past) const;
  // Makes what was computed at `step`, and leaves what was before in `past`. If `checksum` is not
  // null, it adds what it makes.
  void Make(uint64_t step, PastRows& past, Checksummer* checksum) ABSL_LOCKS_EXCLUDED(mu_);
  // Moves what no gradient has touched for longer than TableSpec::evict_after to `past`.
  void Evict(uint64_t step, PastRows& past) ABSL_LOCKS_EXCLUDED(mu_);
  // Asks for the memory of the first rows, so that Make() does not wait for it.
  void FetchRecords(const PastRows& past) const;
  void ForgetRemovals(uint64_t until) ABSL_LOCKS_EXCLUDED(mu_);

  // ---- Any thread, about a step that a snapshot holds ----

  // These ask for memory, so that nobody waits for it: of the bucket itself, and, for the first
  // ids, of the index and of the first `count` elements of the rows. Each needs what the one before
  // it has asked for.
  void FetchHead() const { __builtin_prefetch(&mu_); }
  void FetchIndex(absl::Span<const RowId> ids) const ABSL_LOCKS_EXCLUDED(mu_);
  void FetchRows(absl::Span<const RowId> ids, size_t count) const ABSL_LOCKS_EXCLUDED(mu_);
  // Copies the rows of `ids` to the arrays of the table's width at `to`. Returns how many do not
  // exist. Those have their first values.
  size_t Read(uint64_t step, absl::Span<const RowId> ids, absl::Span<float* const> to) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The ids that were stored at `step`, and touched after step `after`, ascending.
  std::vector<RowId> IdsAt(uint64_t step, uint64_t after) const ABSL_LOCKS_EXCLUDED(mu_);
  // How each of `ids` was stored. Copies the rows and their slots to `elements`, where each has its
  // place.
  std::vector<FoundRow> FindAt(uint64_t step, absl::Span<const RowId> ids,
                               absl::Span<float> elements) const ABSL_LOCKS_EXCLUDED(mu_);
  // The ids that were removed after step `after`, and not after step `step`.
  std::vector<RowId> RemovedAt(uint64_t step, uint64_t after) const ABSL_LOCKS_EXCLUDED(mu_);
  // The sum of the steps from a row's latest touch to `step`, of at most `most` rows, and how many
  // these are.
  RowAges AgesAt(uint64_t step, size_t most) const ABSL_LOCKS_EXCLUDED(mu_);
  // What those of `ids` would add that are new.
  RowGrowth CountNew(absl::Span<const RowId> ids) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Removed {
    uint64_t step = 0;
    RowId id = 0;
  };
  // A row that lies on the disk, as step `touched` has left it, and where its elements go.
  struct DiskRead {
    RowId id = 0;
    uint64_t touched = 0;
    uint64_t offset = 0;  // in the file
    float* to = nullptr;
  };

  // ---- The thread that makes steps

  // Takes the rows of a step from the disk, after as many others have gone there as leave no room.
  void MakeRoomFor(const BucketSums& sums) ABSL_LOCKS_EXCLUDED(mu_);
  // If the records take more than `share` bytes with `more` others, those that were not touched for
  // longest go to the disk, but for those that stay. If it cannot write, they all stay.
  void SendToDisk(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes those of `ids` that lie on the disk back to memory.
  void TakeFromDisk(absl::Span<const RowId> ids) ABSL_LOCKS_EXCLUDED(mu_);
  // The ids that no gradient has touched for too long, ascending.
  std::vector<RowId> OldIds(uint64_t step) const ABSL_LOCKS_EXCLUDED(mu_);
  // How the id is stored before the step. It is not on the disk.
  PastRow Before(RowId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // ---- Any thread

  // The state of `id` at `step`; copies the first `count` of its elements, if it is a row in
  // memory.
  FoundRow Find(uint64_t step, RowId id, size_t count, float* to) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Copies the first `count` elements of each as they were at `step`. The process ends if the disk
  // has lost one.
  void ReadFromDisk(uint64_t step, size_t count, absl::Span<const DiskRead> reads) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // What a reader needs, and the index, with which BucketRows begins, are in one cache line.
  alignas(64) mutable absl::Mutex mu_;
  const RowShape& shape_;
  const uint64_t key_;
  const RowHistory& history_;
  BucketRows rows_ ABSL_GUARDED_BY(mu_);

  RowMemory& memory_;
  RowCounts& counts_;
  const DiskRecords disk_;
  std::vector<Removed> removed_ ABSL_GUARDED_BY(mu_);  // in the order of steps
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_BUCKET_H_
