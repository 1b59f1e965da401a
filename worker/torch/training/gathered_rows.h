// All rows that a test of a model looks up, held in this process. So the rows of a whole test are
// of one step, which many pulls could not promise.

#ifndef SLUICE_WORKER_TORCH_TRAINING_GATHERED_ROWS_H_
#define SLUICE_WORKER_TORCH_TRAINING_GATHERED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/table_spec.h"
#include "worker/torch/tables/row_puller.h"

namespace sluice {

// First it notes which rows are looked up, and gives zeroes. After EndNotes() it gives the values
// that were written to it. Used by one thread.
class GatheredRows final : public RowPuller, public std::enable_shared_from_this<GatheredRows> {
 public:
  explicit GatheredRows(std::vector<TableSpec> tables)
      : tables_(std::move(tables)), noted_(tables_.size()), begins_(tables_.size()) {}

  // Of the latest step that was written. Throws std::logic_error of Read() if EndNotes() did not
  // see the row.
  std::unique_ptr<PendingRows> Start(uint32_t table, const std::vector<RowId>& ids) override;

  void EndNotes();

  // After EndNotes(): the rows that were noted, and memory for them, one after the other.
  const std::vector<RowIds>& wanted() const { return wanted_; }
  absl::Span<float> values() { return absl::MakeSpan(values_); }

  // Writes the first values of all rows, as if no gradient had touched any.
  void SetFirst();
  // Writes one row; does nothing if it is not wanted.
  void Set(uint32_t table, RowId id, absl::Span<const float> row);

 private:
  class Held;

  void Read(uint32_t table, const std::vector<RowId>& ids, absl::Span<float> rows);
  // Where the row lies in values_; its size if it is not wanted.
  size_t PlaceOf(uint32_t table, RowId id) const;

  const std::vector<TableSpec> tables_;
  bool notes_ = true;
  std::vector<std::vector<RowId>>
      noted_;                   // of each table: ascending and different after EndNotes()
  std::vector<size_t> begins_;  // of each table's rows in values_
  std::vector<RowIds> wanted_;
  std::vector<float> values_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_GATHERED_ROWS_H_
