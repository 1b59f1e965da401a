// What is stored of the ids of one bucket after the latest step, and where: each id is a row in
// memory, or a row on the disk, or waits for its admission, or is absent.

#ifndef SLUICE_SERVER_TABLES_BUCKET_ROWS_H_
#define SLUICE_SERVER_TABLES_BUCKET_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/tables/disk/disk_records.h"
#include "server/tables/disk/disk_slots.h"
#include "server/tables/disk_place.h"
#include "server/tables/past_rows.h"
#include "server/tables/record_index.h"
#include "server/tables/record_pages.h"
#include "server/tables/row_memory.h"
#include "server/tables/row_shape.h"

namespace sluice {

// How an id is stored.
struct FoundRow {
  StoredAs as = StoredAs::kAbsent;
  uint64_t touched = 0;         // the latest step that touched it
  uint32_t touches = 0;         // if it waits
  bool on_disk = false;         // a row that is not in memory
  uint64_t offset = 0;          // in the file, of a row on the disk
  RowRecord* record = nullptr;  // of a row in memory
};

// What new ids would add.
struct RowGrowth {
  uint64_t rows = 0;
  uint64_t waiting = 0;
  uint64_t returning = 0;  // rows that would come from the disk to memory
  // Beside the memory that the bucket has already: of their records and in the index. Rows that
  // return count like new ones, unless others go to the disk in their place.
  uint64_t record_bytes = 0;
  uint64_t index_bytes = 0;
};

// About how many bytes of memory the place of a row on the disk takes, and a waiting id.
inline constexpr uint64_t kDiskPlaceBytes = 26;
inline constexpr uint64_t kWaitingBytes = 40;

// Externally synchronized. It does not read or write the disk.
class BucketRows {
 public:
  // Rows that go to the disk, and their slots there.
  struct Leaving {
    std::vector<DiskRow> rows;
    std::vector<uint32_t> slots;
  };

  // All arguments outlive it.
  BucketRows(const RowShape& shape, RowMemory& memory, RowCounts& counts);
  BucketRows(const BucketRows&) = delete;
  BucketRows& operator=(const BucketRows&) = delete;

  size_t rows() const { return index_.size() + on_disk_.size(); }
  size_t rows_in_memory() const { return index_.size(); }
  // What all rows would take as records.
  uint64_t row_bytes() const { return rows() * record_bytes_; }
  FoundRow Find(RowId id) const;
  // Calls visit(id, FoundRow) for each row in memory, then for each on the disk, then for each
  // waiting id. If it returns false, the next of these three follow. The offset is not set.
  template <typename Visit>
  void ForEach(const Visit& visit) const;
  // What those of `ids` would add that are not rows in memory.
  RowGrowth CountNew(absl::Span<const RowId> ids) const;

  // Ask for memory, so that Find() does not wait for it: first of the index; then of the record,
  // with its first `count` elements.
  void Prefetch(RowId id) const;
  void PrefetchRecord(RowId id, size_t count) const { index_.PrefetchRecord(id, count); }

  // Makes an id that is no row in memory one. The caller sets its elements and its step.
  RowRecord* Add(RowId id);
  // An absent or waiting id waits, with so many touches, the latest in that step.
  void Wait(RowId id, uint32_t touches, uint64_t touched) { waiting_[id] = {touches, touched}; }
  // Makes them absent. An id that is absent already is left out.
  void Remove(absl::Span<const RowId> ids);

  // If the records take more than `share` bytes with `more` others: those that were not touched for
  // longest, but for those that stay. Where there are no slots any more, some are left out.
  Leaving TakeOldest(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays);
  // They are written, and lie on the disk; the records may take `share` bytes. Or they are not
  // written, and stay in memory.
  void Leave(const Leaving& leaving, uint64_t share);
  void Stay(const Leaving& leaving);

  // Counts the changes since the call before in RowCounts and RowMemory.
  void Count();

 private:
  struct Waiting {
    uint32_t touches = 0;
    uint64_t touched = 0;
  };

  void GiveUpSlot(RowId id);
  // Gives memory back that records do not need any more.
  void Compact();

  RecordIndex index_;  // of the rows in memory; first, so that it lies beside the bucket's mutex
  const RowShape& shape_;
  RowMemory& memory_;
  RowCounts& counts_;
  const uint64_t record_bytes_;
  RecordPages pages_;
  absl::flat_hash_map<RowId, DiskPlace> on_disk_;
  DiskSlots slots_;
  absl::flat_hash_map<RowId, Waiting> waiting_;
  // What Count() has added to counts_ and memory_.
  uint64_t counted_rows_ = 0;
  uint64_t counted_on_disk_ = 0;
  uint64_t counted_waiting_ = 0;
  uint64_t counted_bytes_ = 0;
  uint64_t counted_row_bytes_ = 0;
  uint64_t counted_index_bytes_ = 0;
};

template <typename Visit>
void BucketRows::ForEach(const Visit& visit) const {
  index_.ForEach([&](RowRecord* record) {
    return visit(record->id, FoundRow{StoredAs::kRow, record->touched, 0, false, 0, record});
  });
  for (const auto& [id, place] : on_disk_) {
    if (!visit(id, FoundRow{StoredAs::kRow, place.touched(), 0, true})) break;
  }
  for (const auto& [id, waiting] : waiting_) {
    if (!visit(id, FoundRow{StoredAs::kWaiting, waiting.touched, waiting.touches})) break;
  }
}

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_BUCKET_ROWS_H_
