// The rows of a checkpoint: where a server that starts again takes them from, and a program that
// uses what was trained.

#ifndef SLUICE_COMMON_CHECKPOINT_SAVED_ROWS_H_
#define SLUICE_COMMON_CHECKPOINT_SAVED_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// A row as it is stored, or an id that waits for its admission (TableSpec::admit_after).
struct StoredRow {
  RowId id = 0;
  Step touched;                      // the latest step whose gradients touched it
  uint32_t touches = 0;              // steps that touched it, if it waits; 0: it is a row
  absl::Span<const float> elements;  // the row, then its slots in their order; none if it waits
};

// One thread at a time calls it.
class SavedRows {
 public:
  virtual ~SavedRows() = default;

  // Calls `take` once for each row and waiting id of all tables, in any order, with the index of
  // its table. Reads files, and takes a time that grows with them. DATA_LOSS names the file that is
  // missing or damaged; `take` may have been called before.
  virtual absl::Status ForEach(
      absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_SAVED_ROWS_H_
