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
  uint64_t touched = 0;         // the step that touched it before; set when the step is made
  size_t at = 0;                // of its elements; only if becomes_row, or it was a row
  RowRecord* record = nullptr;  // only until the step is made
};

// Readers and the step's maker hold the mutex of the bucket.
struct PastRows {
  PastRows(uint64_t bucket_key, size_t row_elements) : key(bucket_key), elements(row_elements) {}

  // The row of `id`, or null if the step does not change it.
  const PastRow* Find(RowId id) const {
    const auto found = std::lower_bound(rows.begin(), rows.end(), id,
                                        [](const PastRow& row, RowId i) { return row.id < i; });
    return found == rows.end() || found->id != id ? nullptr : &*found;
  }
  // The row and its slots.
  absl::Span<const float> ElementsOf(const PastRow& row) const {
    return floats.span().subspan(row.at, elements);
  }

  const uint64_t key;         // of the table and its bucket
  const size_t elements;      // of a row and its slots
  bool evicts = false;        // has rows that the step removes
  bool made = false;          // the step is made in this bucket
  std::vector<PastRow> rows;  // with ascending ids
  FloatBuffer floats;
};

// All that one step changes, in ascending order of keys. A key is there twice where a bucket has
// rows that were removed.
struct PastStep {
  uint64_t step = 0;
  size_t rows = 0;  // in all buckets; set when the step is made
  std::vector<std::unique_ptr<PastRows>> buckets;
};

// What the two steps change together, for snapshots that are older than both. Both are made, and
// `newer` follows `older`. Its step is that of `newer`.
std::shared_ptr<PastStep> Merged(const PastStep& older, const PastStep& newer);

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_PAST_ROWS_H_
