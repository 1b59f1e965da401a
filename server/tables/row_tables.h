// The tables of a model on one server: the rows of its buckets, their slots, and the sums of the
// gradients of the coming step. It is to tables what StripeExecutor and SnapshotStore are to the
// vector. README.md in this folder tells how rows are stored, and how a snapshot keeps them.
//
// One thread, which makes steps, calls it: Add() for each gradient that counts, then Prepare(), and
// Make() or Copy(). Other threads read snapshots meanwhile.

#ifndef SLUICE_SERVER_TABLES_ROW_TABLES_H_
#define SLUICE_SERVER_TABLES_ROW_TABLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/aggregation/staged_rows.h"
#include "server/aggregation/step_orders.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/row_optimizer.h"
#include "server/snapshots/row_snapshot.h"
#include "server/state/table_memory.h"
#include "server/state/table_status.h"
#include "server/state/table_sums.h"
#include "server/tables/row_limits.h"
#include "server/tables/row_store.h"
#include "server/tables/step_sums.h"

namespace sluice {

// What holds for all rows of one step.
struct RowStep {
  // Its number is set by RowTables. learning_rates as in OptimizerStep.
  OptimizerStep optimizer;
  // A mean: the sums of tables with RowDivisor::kRowContributors are divided by the row's shares
  // times this. Absent: they are divided as all others, by optimizer.divisor.
  absl::optional<float> row_scale;
};

// Externally synchronized, but for CheckFits(), Describe() and ForgetRemovals(). Rows that belong
// to other servers' buckets are left out.
class RowTables {
 public:
  // `optimizer` is valid and fits `layout`, which has tables. `parallel` outlives it; snapshots may
  // outlive it.
  RowTables(std::shared_ptr<const Layout> layout, const OptimizerConfig& optimizer, RowPlace place,
            const TableMemory& memory, Parallel& parallel);

  // ---- Start ----

  // Takes a row or waiting id of a checkpoint, if it is of this server's buckets. Before Start().
  void Load(uint32_t table, const StoredRow& row);
  // Begins at that step, at which the optimizer has made so many steps. Returns its rows.
  std::shared_ptr<const RowSnapshot> Start(Step step, uint64_t optimizer_steps);

  // ---- Gradients of the coming step ----

  // Adds the rows of a complete, sealed push, multiplied by `weight`; `share` is
  // GradientWeight::share. The order of calls decides the bits.
  void Add(const StagedRows& rows, float weight, float share);
  // Replaces the sums by those of a journaled step.
  void Load(absl::Span<const TableSums> sums);
  // The sums, in the order of the tables, with ascending ids. Until Clear(), also after Make().
  std::vector<TableSums> sums() const;
  void Clear();

  // ---- The step ----

  // For each table, and in it for each bucket of this server: the sum of the squares of the sums.
  // `divisor` is present if the reduction is a mean, whose gradients are the sums divided by it.
  // The sums of kRowContributors are divided by their shares instead; they are counted as the sums
  // that would give the same gradients.
  std::vector<double> SquaresOfSums(absl::optional<float> divisor) const;
  // Computes the rows of the step, and returns the first that would not be finite, in the order of
  // tables, buckets and ids. No row and no slot has changed yet.
  absl::optional<BadRow> Prepare(const RowStep& step);
  // Makes what was prepared, at step `made`, which follows the latest. Removes rows that were not
  // touched for long. Returns its snapshot. If `checksum` is not null, it gets a checksum of all
  // rows and slots that were made.
  std::shared_ptr<const RowSnapshot> Make(Step made, uint64_t* checksum = nullptr);
  // The step `made` leaves all rows as they are.
  std::shared_ptr<const RowSnapshot> Copy(Step made);

  uint64_t optimizer_steps() const { return optimizer_steps_; }
  // Nobody asks any more which rows were removed at this step or before.
  void ForgetRemovals(Step until);

  // ---- Any thread ----

  // BAD_ARGUMENT if a row is of another server's buckets. TABLE_FULL if the push would make more
  // rows than a table, or the memory, may have. Rows of pushes that arrive at the same time are not
  // counted, so the limit may be passed by those.
  absl::Status CheckFits(const StagedRows& rows) const;
  // Of tables behind the first 100, neither ages nor hottest rows.
  std::vector<TableStatus> Describe() const;

 private:
  struct Table {
    std::unique_ptr<RowOptimizer> optimizer;
    size_t rate = 0;  // its place in OptimizerStep::learning_rates
  };

  // Begins the optimizers' step. Returns the rule of each table.
  std::vector<RowRule> BeginStep(const RowStep& step);
  // Adds rows to be removed at `made` to what was prepared.
  void PrepareEvictions(Step made);
  // Makes what was prepared. If `checksums` is not null, it gets that of each bucket.
  void MakeBuckets(Step made, std::vector<uint64_t>* checksums);
  std::shared_ptr<const RowSnapshot> Snapshot(Step step);
  // The ages of all rows of a table together, estimated from some of them.
  double EstimateAges(uint32_t table) const;

  const std::shared_ptr<const RowStore> store_;
  const RowLimits limits_;
  std::vector<Table> tables_;
  StepSums sums_;
  uint64_t optimizer_steps_ = 0;
  std::atomic<uint64_t> latest_{0};     // step
  std::atomic<uint64_t> forgotten_{0};  // step until which removals are forgotten
  std::shared_ptr<PastStep> prepared_;  // null if no step is prepared
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_TABLES_H_
