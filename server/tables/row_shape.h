// What the rows of one table have in common, and what is counted of them.

#ifndef SLUICE_SERVER_TABLES_ROW_SHAPE_H_
#define SLUICE_SERVER_TABLES_ROW_SHAPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/optional.h"
#include "common/tensor/table_spec.h"
#include "server/optimizers/row_optimizer.h"

namespace sluice {

struct RowShape {
  TableSpec spec;
  uint64_t initializer_key = 0;
  size_t slots = 0;  // of the optimizer

  size_t width() const { return spec.width; }
  size_t elements() const { return width() * (1 + slots); }  // of a record
  // Whether an id that waits, or does not exist, becomes a row when one more step touches it.
  bool Admits(uint32_t touches) const { return touches + 1 >= spec.admit_after; }
};

// Any thread reads them; see TableStatus.
struct RowCounts {
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> removed{0};
};

// How the coming step computes rows. Several threads may use it.
struct RowRule {
  const RowOptimizer* optimizer = nullptr;  // its step has begun
  // If present, a row's sum is divided by its share times this before the optimizer gets it, and
  // the optimizer divides by 1.
  absl::optional<float> row_scale;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_SHAPE_H_
