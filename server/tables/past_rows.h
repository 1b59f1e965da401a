// What one step changes in one bucket. Before the step is made, it has the rows to come; then they
// change places with the stored ones, and it has the rows of before, for older snapshots.

#ifndef SLUICE_SERVER_TABLES_PAST_ROWS_H_
#define SLUICE_SERVER_TABLES_PAST_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/table_spec.h"
#include "server/tables/record_pages.h"

namespace sluice {

// How an id is stored before the step.
enum class StoredAs : uint8_t { kAbsent, kWaiting, kRow };

struct PastRow {
  RowId id = 0;
  StoredAs before = StoredAs::kAbsent;
  bool becomes_row = false;     // or stays one
  uint32_t touches = 0;         // before the step, if it waits
  uint64_t touched = 0;         // the step that touched it before
  uint32_t at = 0;              // which of the bucket's elements; only if it becomes or was a row
  uint32_t sum = 0;             // its index in BucketSums; only until the step is made
  RowRecord* record = nullptr;  // only until the step is made
};

// The memory of rows and of their elements.
struct PastMemory {
  std::vector<PastRow> rows;
  FloatBuffer floats;
};

// Readers and the step's maker hold the mutex of the bucket. Can be moved, but not copied.
struct PastRows {
  PastRows(uint64_t bucket_key, size_t row_elements) : key(bucket_key), elements(row_elements) {}

  // Takes `memory` as its own.
  void Own(PastMemory memory);

  // The row of `id`, or null if the step does not change it.
  const PastRow* Find(RowId id) const {
    const auto found = std::lower_bound(rows.begin(), rows.end(), id,
                                        [](const PastRow& row, RowId i) { return row.id < i; });
    return found == rows.end() || found->id != id ? nullptr : &*found;
  }
  // The row and its slots.
  absl::Span<float> ElementsOf(const PastRow& row) const {
    return floats.subspan(row.at * elements, elements);
  }

  uint64_t key;              // of the table and its bucket
  size_t elements;           // of a row and its slots
  bool evicts = false;       // has rows that the step removes
  bool made = false;         // the step is made in this bucket
  absl::Span<PastRow> rows;  // with ascending ids
  absl::Span<float> floats;
  PastMemory own;  // of rows and floats, if the step does not own their memory
};

// All that one step changes, in ascending order of keys. A key is there twice where a bucket has
// rows that were removed.
struct PastStep {
  uint64_t step = 0;
  size_t rows = 0;  // in all buckets; set when the step is made
  std::vector<PastRows> buckets;
  PastMemory memory;  // of all buckets that do not own theirs
};

// What the two steps change together, for snapshots that are older than both. Both are made, and
// `newer` follows `older`. Its step is that of `newer`.
std::shared_ptr<PastStep> Merged(const PastStep& older, const PastStep& newer);

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_PAST_ROWS_H_
