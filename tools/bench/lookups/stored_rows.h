// The tables of a server as a benchmark uses them: without a wire, a gate and other threads.

#ifndef SLUICE_TOOLS_BENCH_LOOKUPS_STORED_ROWS_H_
#define SLUICE_TOOLS_BENCH_LOOKUPS_STORED_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/thread_pool.h"
#include "common/protocol/optimizer_config.h"
#include "server/tables/row_tables.h"

namespace sluice::bench {

// One table. Externally synchronized.
class StoredRows {
 public:
  StoredRows(uint32_t width, const OptimizerOptions& optimizer);

  // A push of the rows of `ids`, which ascend, as it is when all of it has arrived. `gradients` has
  // one row after the other and is shared.
  std::unique_ptr<StagedRows> Arrived(const std::vector<uint64_t>& ids,
                                      std::shared_ptr<const std::vector<float>> gradients) const;
  // Makes a step of one push.
  void Step(const StagedRows& push);
  // Copies the rows of `ids` in the latest step to `to`, one after the other.
  void Read(absl::Span<const uint64_t> ids, absl::Span<float> to) const {
    latest_->Read(0, ids, to);
  }
  TableStatus status() const { return tables_.Describe()[0]; }

 private:
  const std::shared_ptr<const Layout> layout_;
  ThreadPool one_thread_{1};
  RowTables tables_;
  uint64_t step_ = 0;
  std::shared_ptr<const RowSnapshot> latest_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_LOOKUPS_STORED_ROWS_H_
