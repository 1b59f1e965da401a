// The arithmetic of a step on all that one server holds: its stripe of the vector, and the rows of
// its buckets of the model's tables. It carries out each order on both, and reports for both.
//
// One thread at a time calls it, without the owner's mutex. Any thread may call ForgetRemovals(),
// and what RowTables says.

#ifndef SLUICE_SERVER_REPLICA_MODEL_EXECUTOR_H_
#define SLUICE_SERVER_REPLICA_MODEL_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/checkpoint/saved_rows.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/stripe_executor.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/table_memory.h"
#include "server/state/table_sums.h"
#include "server/tables/row_tables.h"

namespace sluice {

// The snapshots from which and to which a step goes.
struct SnapshotPair {
  std::shared_ptr<const Snapshot> current;
  // Has its step. Its values are undefined, or the sum; see SumInto(). kDigest has none.
  std::shared_ptr<Snapshot> next;
};

// Externally synchronized.
class ModelExecutor {
 public:
  // Of that stripe, and of the buckets of its server. `layout` is that of the whole model;
  // `optimizer` is valid and fits it; `program` is as for CheckedOptimizer. `parallel` outlives the
  // object.
  ModelExecutor(std::shared_ptr<const Layout> layout, const OptimizerConfig& optimizer,
                const Stripes& stripes, uint32_t stripe, const TableMemory& table_memory,
                Parallel& parallel, std::unique_ptr<ProgramOptimizer> program = nullptr);

  // Begins with these rows at that step; null: there are none yet. SavedRows' errors, and DATA_LOSS
  // if a row has another size.
  absl::Status StartRows(const SavedRows* rows, uint64_t row_steps, Snapshot& first);

  // See StripeExecutor. A push is complete and sealed; Keep()'s stays valid until Clear().
  void SumInto(Snapshot& next) { stripe_.SumInto(next.values.span()); }
  void Add(const PendingPush& push, const GradientWeight& weight);
  void Keep(const PendingPush& push, const GradientWeight& weight);
  void Load(absl::Span<const float> sum, absl::Span<const TableSums> rows);
  // `checksum`, if not null, gets from kMake the checksum of what it made.
  StripeReport Carry(const StepOrder& order, const SnapshotPair& step,
                     const WriteProgress& progress = nullptr, uint64_t* checksum = nullptr);
  void Clear();

  // No checkpoint will need the rows that were removed until that step.
  void ForgetRemovals(Step until) {
    if (tables_ != nullptr) tables_->ForgetRemovals(until);
  }

  // What the journal records of the gradients. Do not call it after SumInto().
  absl::Span<const float> sum() const { return stripe_.sum(); }
  std::vector<TableSums> row_sums() const;

  StripeExecutor& stripe() { return stripe_; }
  // For checkpoints: the names of the slots of each table's rows, and the steps that the optimizer
  // of the tables has made.
  const std::vector<RowSlots>& row_slots() const { return row_slots_; }
  uint64_t row_steps() const { return tables_ == nullptr ? 0 : tables_->optimizer_steps(); }
  // Null if the model has none.
  const std::shared_ptr<RowTables>& tables() const { return tables_; }

 private:
  void CarryOnRows(const StepOrder& order, Snapshot* next, uint64_t* checksum,
                   StripeReport* report);

  absl::Status LoadRows(const SavedRows& rows);

  const std::shared_ptr<const Layout> layout_;  // of the whole model
  const std::vector<RowSlots> row_slots_;
  StripeExecutor stripe_;
  std::shared_ptr<RowTables> tables_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_MODEL_EXECUTOR_H_
