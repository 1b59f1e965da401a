// Which parts of a file the rows of one bucket have: slots of one size.

#ifndef SLUICE_SERVER_TABLES_DISK_DISK_SLOTS_H_
#define SLUICE_SERVER_TABLES_DISK_DISK_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/tables/disk/disk_file.h"

namespace sluice {

// Externally synchronized.
class DiskSlots {
 public:
  static constexpr uint32_t kMost = uint32_t{1} << 28;

  // Slots of so many bytes. `file`, which may be null while no slot is taken, outlives it.
  DiskSlots(DiskFile* file, uint64_t slot_bytes) : file_(file), slot_bytes_(slot_bytes) {}

  // So many slots, ascending. Fewer where there would be more than kMost.
  std::vector<uint32_t> Take(size_t count);
  void Free(uint32_t slot) { free_.push_back(slot); }

  // Where a slot is in the file.
  uint64_t OffsetOf(uint32_t slot) const;

 private:
  // Slots that lie one after the other. An extent is an eighth of what the bucket has already.
  struct Extent {
    uint32_t first = 0;  // slot
    uint64_t offset = 0;
  };

  void AddExtent();

  DiskFile* const file_;
  const uint64_t slot_bytes_;
  std::vector<Extent> extents_;  // in the order of their slots
  uint32_t next_ = 0;            // the first slot that was never taken
  uint32_t end_ = 0;             // of the slots of all extents
  std::vector<uint32_t> free_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_DISK_DISK_SLOTS_H_
