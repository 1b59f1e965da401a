// The rows of a push that are arriving: first their ids, then a vector of their gradients, in
// chunks. The server's tables hold no trace of them until the push counts.

#ifndef SLUICE_SERVER_AGGREGATION_STAGED_ROWS_H_
#define SLUICE_SERVER_AGGREGATION_STAGED_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

// Externally synchronized. After Seal() any number of threads may read it.
class StagedRows {
 public:
  // `layout` has the tables. `announced`: PushHeader::row_bytes, the most that may come.
  StagedRows(std::shared_ptr<const Layout> layout, uint64_t announced)
      : layout_(std::move(layout)), announced_(announced) {}

  // Takes ids of a table that the layout has; they are ascending. BAD_ARGUMENT if they do not come
  // after those before them, after a chunk has come, or if they are more than was announced. The
  // ids of a table may come in any number of calls.
  absl::Status AddIds(RowIds rows);

  // As StagedVector's methods. Offsets count from the first element of the first row.
  absl::Status Reserve(const TensorChunk& chunk);
  void Place(TensorChunk chunk) { values_->Place(std::move(chunk)); }

  // OK if all elements of all ids have arrived, else BAD_CHUNK.
  absl::Status CheckComplete() const;
  void Seal();

  // "row 17 of items, element 3", for an error. Only of elements that were reserved.
  std::string ElementName(uint64_t element) const;

  // The tables that have rows, in the order of the layout, each once.
  const std::vector<RowIds>& ids() const { return ids_; }
  uint64_t rows() const { return rows_; }  // in all tables
  // The gradients, one row after the other in the order of ids(); null if there are no ids.
  const StagedVector* values() const { return values_.has_value() ? &*values_ : nullptr; }
  uint64_t bytes() const { return values_.has_value() ? values_->bytes() : 0; }

 private:
  uint32_t WidthOf(const RowIds& rows) const { return layout_->tables()[rows.table].width; }
  absl::Status CheckFollows(const RowIds& rows) const;
  absl::Status EndIds();

  const std::shared_ptr<const Layout> layout_;
  const uint64_t announced_;
  uint64_t row_bytes_ = 0;  // of ids_
  uint64_t rows_ = 0;
  std::vector<RowIds> ids_;
  absl::optional<StagedVector> values_;  // absent until all ids are here
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STAGED_ROWS_H_
