// Where a row lies on the disk.

#ifndef SLUICE_SERVER_TABLES_DISK_PLACE_H_
#define SLUICE_SERVER_TABLES_DISK_PLACE_H_

#include <cstdint>

#include "server/tables/disk/disk_slots.h"

namespace sluice {

// Its slot, and the step that touched it last: 8 bytes.
class DiskPlace {
 public:
  // Rows of later steps stay in memory. At 1000 steps a second that is after two years.
  static constexpr uint64_t kMostTouched = (uint64_t{1} << 36) - 1;

  DiskPlace() = default;
  // `slot` is below DiskSlots::kMost; `touched` is at most kMostTouched.
  DiskPlace(uint32_t slot, uint64_t touched) : bits_(touched << kSlotBits | slot) {
    static_assert(DiskSlots::kMost == 1 << kSlotBits, "a slot takes 28 bits");
  }

  uint32_t slot() const { return static_cast<uint32_t>(bits_) & (DiskSlots::kMost - 1); }
  uint64_t touched() const { return bits_ >> kSlotBits; }

 private:
  static constexpr int kSlotBits = 28;

  uint64_t bits_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_DISK_PLACE_H_
