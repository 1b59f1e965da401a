// Where the index of a bucket says that a row is.

#ifndef SLUICE_SERVER_TABLES_ROW_ENTRY_H_
#define SLUICE_SERVER_TABLES_ROW_ENTRY_H_

#include <cstdint>

#include "server/tables/disk/disk_slots.h"
#include "server/tables/record_pages.h"

namespace sluice {

// As large as a pointer. A record's address is even; an odd number is a row on the disk: its slot
// there, and the step that touched it.
class RowEntry {
 public:
  // Rows of later steps stay in memory. At 1000 steps a second that is after a year.
  static constexpr uint64_t kMostTouched = (uint64_t{1} << 35) - 1;

  RowEntry() = default;  // of a new row: without a record
  explicit RowEntry(RowRecord* record) : bits_(reinterpret_cast<uintptr_t>(record)) {}
  static RowEntry OnDisk(uint32_t slot, uint64_t touched) {
    static_assert(DiskSlots::kMost == 1 << kSlotBits, "a slot takes 28 bits");
    RowEntry entry;
    entry.bits_ = touched << (kSlotBits + 1) | uint64_t{slot} << 1 | 1;
    return entry;
  }

  bool on_disk() const { return (bits_ & 1) != 0; }
  bool has_record() const { return bits_ != 0 && !on_disk(); }
  // Not of a row on the disk.
  RowRecord* record() const { return reinterpret_cast<RowRecord*>(static_cast<uintptr_t>(bits_)); }
  // Of a row on the disk.
  uint32_t slot() const { return static_cast<uint32_t>(bits_ >> 1) & (DiskSlots::kMost - 1); }
  // The latest step that touched the row.
  uint64_t touched() const { return on_disk() ? bits_ >> (kSlotBits + 1) : record()->touched; }

 private:
  static constexpr int kSlotBits = 28;

  uint64_t bits_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_ENTRY_H_
