// The sums of the gradients of the coming step, of all tables of one server.

#ifndef SLUICE_SERVER_TABLES_STEP_SUMS_H_
#define SLUICE_SERVER_TABLES_STEP_SUMS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "server/aggregation/staged_rows.h"
#include "server/state/table_sums.h"
#include "server/tables/bucket_sums.h"
#include "server/tables/row_store.h"

namespace sluice {

// Externally synchronized. Each bucket is worked on by one thread, so the number of threads never
// changes a bit.
class StepSums {
 public:
  // `store` and `parallel` outlive it.
  StepSums(const RowStore& store, Parallel& parallel);

  // As RowTables has them.
  void Add(const StagedRows& rows, float weight, float share);
  void Load(absl::Span<const TableSums> sums);
  std::vector<TableSums> sums() const;
  std::vector<double> Squares(absl::optional<float> divisor) const;
  void Clear();

  // A bucket with sums.
  struct Touched {
    uint32_t table = 0;
    uint32_t bucket = 0;
    const BucketSums* sums = nullptr;
  };
  // In ascending order of tables and buckets.
  std::vector<Touched> touched() const;
  // Calls part(i) for all i below `count`, on several threads if there are enough rows.
  void ForEach(size_t count, absl::FunctionRef<void(size_t)> part) const;
  // The same with several at once: calls part(begin, end).
  void ForRanges(size_t count, absl::FunctionRef<void(size_t, size_t)> part) const;

 private:
  BucketSums& SumsOf(uint32_t table, uint32_t bucket) {
    return tables_[table][store_.place().IndexOf(bucket)];
  }
  void AddEntry(const RowIds& rows, const StagedVector& values, uint64_t offset, float weight,
                float share);
  TableSums SumsOfTable(uint32_t table) const;

  const RowStore& store_;
  Parallel& parallel_;
  std::vector<std::vector<BucketSums>> tables_;  // by RowPlace::IndexOf()
  uint64_t rows_ = 0;                            // that were added since Clear()
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_STEP_SUMS_H_
