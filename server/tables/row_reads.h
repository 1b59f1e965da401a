// How often the rows of a table are read, and which of them most.

#ifndef SLUICE_SERVER_TABLES_ROW_READS_H_
#define SLUICE_SERVER_TABLES_ROW_READS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/state/table_status.h"
#include "server/tables/frequent_ids.h"

namespace sluice {

// Any thread may call it.
class RowReads {
 public:
  // Of so many reads one is looked at to find the hottest ids.
  static constexpr uint64_t kSampled = 64;

  // These ids were read, and so many of them were not rows.
  void Count(absl::Span<const RowId> ids, uint64_t absent) ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t reads() const { return reads_.load(std::memory_order_relaxed); }
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  // At most HotRow::kMost, the hottest first. Their reads are estimated.
  std::vector<HotRow> Hottest() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr size_t kCounts = 256;

  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> hits_{0};
  mutable absl::Mutex mu_;
  FrequentIds frequent_ ABSL_GUARDED_BY(mu_){kCounts};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_READS_H_
