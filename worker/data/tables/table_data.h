// What a model with tables learns from. The models are in worker/torch/table_models.

#ifndef SLUICE_WORKER_DATA_TABLES_TABLE_DATA_H_
#define SLUICE_WORKER_DATA_TABLES_TABLE_DATA_H_

#include <cstdint>

#include "absl/types/span.h"
#include "worker/data/batch.h"

namespace sluice {

// Immutable. Any thread may call its methods.
class TableData {
 public:
  virtual ~TableData() = default;

  // The samples of an epoch.
  virtual int64_t size() const = 0;

  // Makes a batch of the samples `rows` of that epoch, each in [0, size()). `step` counts the
  // batches from 0, over all epochs, and is the same for all workers of a batch. The header of each
  // data set says what Batch::ids has.
  virtual Batch MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t step) const = 0;

  // All samples of the test, which are in no epoch.
  virtual const Batch& test() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_TABLE_DATA_H_
