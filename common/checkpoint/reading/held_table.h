// The rows of one table of a checkpoint, in memory.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_HELD_TABLE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_HELD_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/saved_rows.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// The rows in ascending order of id. Ids that wait for their admission are left out.
class HeldTable {
 public:
  // Reads all rows, and keeps of each of that table the first elements: its width without the
  // slots, or all. Errors are those of SavedRows.
  static absl::StatusOr<HeldTable> Read(const SavedRows& rows, uint32_t table, uint64_t elements);

  size_t size() const { return places_.size(); }
  uint64_t width() const { return row_elements_; }  // elements that are kept of a row
  RowId id(size_t i) const { return places_[i].first; }
  absl::Span<const float> row(size_t i) const {
    return absl::MakeConstSpan(elements_).subspan(places_[i].second, row_elements_);
  }

 private:
  explicit HeldTable(uint64_t row_elements) : row_elements_(row_elements) {}

  uint64_t row_elements_;
  std::vector<std::pair<RowId, uint64_t>> places_;  // ids, and offsets in `elements_`
  std::vector<float> elements_;                     // of the rows, as they came
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_HELD_TABLE_H_
