// Where a RemoteEmbedding takes its rows from. A RemoteOptimizer gives it one.

#ifndef SLUICE_WORKER_TORCH_TABLES_ROW_PULLER_H_
#define SLUICE_WORKER_TORCH_TABLES_ROW_PULLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// Rows that are on their way. Destroying it gives them up.
class PendingRows {
 public:
  virtual ~PendingRows() = default;

  // Waits for the rows, and writes one after the other. Called once. Throws RemoteError.
  virtual void Read(absl::Span<float> rows) = 0;
};

// Only the thread that trains uses it.
class RowPuller {
 public:
  virtual ~RowPuller() = default;

  // Asks for rows of the latest step, and returns at once. `ids` are ascending, each once. `table`
  // is its index in the layout.
  virtual std::unique_ptr<PendingRows> Start(uint32_t table, const std::vector<RowId>& ids) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_ROW_PULLER_H_
