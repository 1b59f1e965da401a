// The rows of a checkpoint that was saved before: where a server that starts again takes them from.
// server/durable implements it.

#ifndef SLUICE_SERVER_STATE_SAVED_ROWS_H_
#define SLUICE_SERVER_STATE_SAVED_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/snapshots/row_snapshot.h"

namespace sluice {

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

#endif  // SLUICE_SERVER_STATE_SAVED_ROWS_H_
