// Rows that a worker has pulled, and uses again for some steps in place of pulling them.
//
// Bounded staleness for reads, as in the SSPTable of Petuum (Ho et al., "More Effective Distributed
// ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013): a row that is found is at most
// `max_age` steps older than the step that the worker is at. A worker's own gradients are not
// applied to it: the optimizer is the server's.

#ifndef SLUICE_WORKER_CLIENT_ROW_CACHE_H_
#define SLUICE_WORKER_CLIENT_ROW_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "common/tensor/table_spec.h"
#include "worker/client/row_cache_options.h"

namespace sluice {

// BAD_ARGUMENT in sync and backup, where all rows are of the worker's step.
absl::Status CheckSuits(const RowCacheOptions& options, ConsistencyMode mode);

// Externally synchronized.
class RowCache {
 public:
  RowCache(const std::vector<TableSpec>& tables, const RowCacheOptions& options);

  // The server's incarnation, of which all rows are; those of another one are forgotten.
  void Use(Incarnation incarnation);

  uint64_t max_age() const { return max_age_; }
  uint32_t width(uint32_t table) const { return tables_[table].width; }

  // The row if it is here and young enough for a worker that is at step `now`, else null. Valid
  // until the next Put() or Use().
  const float* Find(uint32_t table, RowId id, Step now);

  // Keeps the table's rows, which are of `step`, one after the other. When the memory is used up,
  // they take the places of rows that were not found for the longest time (second chance, Corbató
  // 1968).
  void Put(uint32_t table, absl::Span<const RowId> ids, absl::Span<const float> rows, Step step);

 private:
  struct Place {
    RowId id = 0;
    Step step;
    bool found = false;  // since it was put, or passed by
  };
  struct Table {
    uint32_t width = 0;
    size_t most = 0;  // rows
    absl::flat_hash_map<RowId, uint32_t> place_of;
    std::vector<Place> places;
    std::vector<float> rows;
    size_t hand = 0;  // the place that is looked at next for a row to replace
  };
  static uint32_t TakePlace(Table& table, RowId id);

  const uint64_t max_age_;
  Incarnation incarnation_;
  std::vector<Table> tables_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_ROW_CACHE_H_
