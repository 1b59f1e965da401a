#include "server/tables/disk/disk_slots.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr uint64_t kFirstExtentBytes = 16 << 10;
constexpr uint32_t kGrowth = 8;

}  // namespace

std::vector<uint32_t> DiskSlots::Take(size_t count) {
  std::vector<uint32_t> slots;
  while (slots.size() < count && !free_.empty()) {
    slots.push_back(free_.back());
    free_.pop_back();
  }
  while (slots.size() < count && next_ < kMost) {
    if (next_ == end_) AddExtent();
    slots.push_back(next_++);
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

void DiskSlots::AddExtent() {
  const uint64_t least = std::max<uint64_t>(1, kFirstExtentBytes / slot_bytes_);
  const auto slots = std::max(static_cast<uint32_t>(least), end_ / kGrowth);
  extents_.push_back({end_, file_->Reserve(slots * slot_bytes_)});
  end_ += slots;
}

uint64_t DiskSlots::OffsetOf(uint32_t slot) const {
  const auto after =
      std::upper_bound(extents_.begin(), extents_.end(), slot,
                       [](uint32_t s, const Extent& extent) { return s < extent.first; });
  const Extent& extent = *(after - 1);
  return extent.offset + (slot - extent.first) * slot_bytes_;
}

}  // namespace sluice
