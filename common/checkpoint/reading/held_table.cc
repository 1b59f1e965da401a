#include "common/checkpoint/reading/held_table.h"

#include <algorithm>

namespace sluice {

absl::StatusOr<HeldTable> HeldTable::Read(const SavedRows& rows, uint32_t table,
                                          uint64_t elements) {
  HeldTable held(elements);
  const absl::Status read = rows.ForEach([&](uint32_t of, const StoredRow& row) {
    if (of != table || row.touches > 0) return;
    held.places_.emplace_back(row.id, held.elements_.size());
    const absl::Span<const float> kept = row.elements.subspan(0, elements);
    held.elements_.insert(held.elements_.end(), kept.begin(), kept.end());
  });
  if (!read.ok()) return read;
  std::sort(held.places_.begin(), held.places_.end());
  return held;
}

}  // namespace sluice
