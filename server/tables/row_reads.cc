#include "server/tables/row_reads.h"

namespace sluice {

void RowReads::Count(absl::Span<const RowId> ids, uint64_t absent) {
  hits_.fetch_add(ids.size() - absent, std::memory_order_relaxed);
  const uint64_t before = reads_.fetch_add(ids.size(), std::memory_order_relaxed);
  const uint64_t first = (kSampled - before % kSampled) % kSampled;
  if (first >= ids.size()) return;
  absl::MutexLock lock(&mu_);
  for (uint64_t i = first; i < ids.size(); i += kSampled) frequent_.Add(ids[i]);
}

std::vector<HotRow> RowReads::Hottest() const {
  std::vector<HotRow> hottest;
  absl::MutexLock lock(&mu_);
  for (const FrequentIds::Counted& one : frequent_.Top(HotRow::kMost)) {
    hottest.push_back({one.id, one.count * kSampled});
  }
  return hottest;
}

}  // namespace sluice
