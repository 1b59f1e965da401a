// Puts the rows of a pull together: those that a server has sent, and those that a cache has.

#ifndef SLUICE_WORKER_CLIENT_CACHED_ROWS_H_
#define SLUICE_WORKER_CLIENT_CACHED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/row_cache.h"
#include "worker/client/row_pull.h"

namespace sluice {

// Those rows that the cache does not have for a worker that is at step `now`, in their order.
std::vector<RowIds> NotIn(RowCache& cache, const std::vector<RowIds>& rows, Step now);

// The rows of parts that were read, in their order. `rows` outlive it.
class RowsSent {
 public:
  RowsSent(const std::vector<RowPull::Part>& parts, absl::Span<const float> rows);

  // The next row if it is that one, else null.
  const float* Take(uint32_t table, RowId id, uint32_t width);

 private:
  std::vector<std::pair<uint32_t, RowId>> names_;
  size_t next_ = 0;
  absl::Span<const float> rows_;
};

// Rows that are still to come, and where each belongs.
struct RowGaps {
  std::vector<RowIds> rows;
  std::vector<absl::Span<float>> places;
};

// Writes rows to `to`, which has their size: those that were sent, and the others from the cache.
// Returns those that the cache has no more.
RowGaps FillRows(const std::vector<RowIds>& rows, RowsSent sent, RowCache& cache, Step now,
                 absl::Span<float> to);

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_CACHED_ROWS_H_
