// The rows and waiting ids of one bucket of a table, as they are after the latest step.

#ifndef SLUICE_SERVER_TABLES_ROW_BUCKET_H_
#define SLUICE_SERVER_TABLES_ROW_BUCKET_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/encoding/checksum.h"
#include "server/snapshots/row_snapshot.h"
#include "server/tables/bucket_sums.h"
#include "server/tables/disk/disk_records.h"
#include "server/tables/disk/disk_slots.h"
#include "server/tables/disk_place.h"
#include "server/tables/past_rows.h"
#include "server/tables/record_index.h"
#include "server/tables/record_pages.h"
#include "server/tables/row_computer.h"
#include "server/tables/row_history.h"
#include "server/tables/row_memory.h"
#include "server/tables/row_shape.h"

namespace sluice {

// How an id was stored at a step.
struct FoundRow {
  StoredAs as = StoredAs::kAbsent;
  uint64_t touched = 0;
  uint32_t touches = 0;
  bool on_disk = false;  // a row whose elements were not copied
};

// Rows whose memory is asked for ahead of their use.
inline constexpr size_t kFetchedAhead = 32;

// How old some rows are together, in steps.
struct RowAges {
  uint64_t rows = 0;
  uint64_t sum = 0;
};

// What new ids would add.
struct RowGrowth {
  uint64_t rows = 0;
  uint64_t waiting = 0;
  // Beside the memory that the bucket has already: of their records and in the index. Rows on the
  // disk, which come back to memory, count like new ones, unless others go there in their place.
  uint64_t record_bytes = 0;
  uint64_t index_bytes = 0;
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
  struct Waiting {
    uint32_t touches = 0;
    uint64_t touched = 0;
  };
  struct Removed {
    uint64_t step = 0;
    RowId id = 0;
  };
  // Rows of a step that need memory.
  struct Coming {
    uint64_t share = 0;  // the bytes that the bucket's records may take
    size_t fresh = 0;
    std::vector<RowId> on_disk;
  };
  // A row that a reader wants, and that lies on the disk as that step has left it.
  struct RowOnDisk {
    RowId id = 0;
    uint64_t touched = 0;
    uint64_t offset = 0;  // in the file
    float* to = nullptr;
  };

  uint64_t record_bytes() const { return RecordPages::BytesOf(shape_.elements()); }
  size_t rows() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return index_.size() + disk_rows_.size();
  }
  bool IsOld(uint64_t step, uint64_t touched) const {
    return step > touched && step - touched > shape_.spec.evict_after;
  }

  // ---- Between memory and the disk ----

  // Takes the rows of a step from the disk, after as many others have gone there as leave no room.
  void MakeRoomFor(const BucketSums& sums) ABSL_LOCKS_EXCLUDED(mu_);
  Coming ComingOf(const BucketSums& sums) const ABSL_LOCKS_EXCLUDED(mu_);
  // If the records take more than `share` bytes with `more` others, those that were not touched for
  // longest go to the disk, but for those that stay. If it cannot write, they all stay.
  void SendToDisk(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<DiskRow> OldestRows(uint64_t room, size_t more,
                                  absl::FunctionRef<bool(RowId)> stays) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Gives the rows their places. Where there are no slots any more, the last rows are left out.
  std::vector<uint32_t> TakeSlots(std::vector<DiskRow>& rows) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives memory back that records do not need any more.
  void Compact() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeFromDisk(absl::Span<const RowId> ids) ABSL_LOCKS_EXCLUDED(mu_);
  void TakeSomeFromDisk(absl::Span<const RowId> ids) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<RowId> OldOnDisk(uint64_t step) const ABSL_LOCKS_EXCLUDED(mu_);
  RowOnDisk PlaceOf(RowId id, float* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Copies the first `count` elements of each as they were at `step`. The process ends if the disk
  // has lost one.
  void ReadFromDisk(uint64_t step, size_t count, const std::vector<RowOnDisk>& rows) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // ---- Parts of the above ----

  // A row that the step touches, and how it is stored. `sum` is the index of its sum.
  PastRow Touched(RowId id, uint32_t sum) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FetchRecord(const PastRow& row) const;
  // Adds a record for an id that has none.
  RowRecord* AddRecord(RowId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeRow(uint64_t step, PastRow& row, float* elements) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeWait(uint64_t step, PastRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes those of the ids in memory that are old out of the index and the map.
  std::vector<PastRow> TakeOld(uint64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The state of `id` at `step`; copies the first `count` of its elements, if it is a row in
  // memory.
  FoundRow Find(uint64_t step, RowId id, size_t count, float* to) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // In one cache line.
  alignas(64) mutable absl::Mutex mu_;
  RecordIndex index_ ABSL_GUARDED_BY(mu_);  // of the rows in memory

  const RowShape& shape_;
  const uint64_t key_;
  const RowHistory& history_;
  RowMemory& memory_;
  RowCounts& counts_;
  const DiskRecords disk_records_;
  absl::flat_hash_map<RowId, Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<Removed> removed_ ABSL_GUARDED_BY(mu_);  // in the order of steps
  RecordPages pages_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<RowId, DiskPlace> disk_rows_ ABSL_GUARDED_BY(mu_);  // not in memory
  DiskSlots disk_slots_ ABSL_GUARDED_BY(mu_);
  // What this bucket has added to counts_ and memory_.
  uint64_t counted_rows_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t counted_on_disk_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t counted_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t counted_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t counted_row_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t counted_index_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// About how many bytes of memory the place of a row on the disk takes, and a waiting id.
inline constexpr uint64_t kDiskPlaceBytes = 26;
inline constexpr uint64_t kWaitingBytes = 40;

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_BUCKET_H_
