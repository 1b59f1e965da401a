// What the rows of one table have in common, and what is counted of them.

#ifndef SLUICE_SERVER_TABLES_ROW_SHAPE_H_
#define SLUICE_SERVER_TABLES_ROW_SHAPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/tensor/table_spec.h"

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
  std::atomic<uint64_t> on_disk{0};  // of the rows
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> removed{0};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_SHAPE_H_
