// What a table has on one server, or on all: what ListTables and the metrics show.

#ifndef SLUICE_SERVER_STATE_TABLE_STATUS_H_
#define SLUICE_SERVER_STATE_TABLE_STATUS_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "common/tensor/table_spec.h"

namespace sluice {

// A row that is read often.
struct HotRow {
  static constexpr size_t kMost = 10;  // of a table

  RowId id = 0;
  uint64_t reads = 0;

  bool operator==(const HotRow& other) const { return id == other.id && reads == other.reads; }
};

// A plain value. Fields from `dropped` on count since the server started, but for `ages`.
struct TableStatus {
  uint64_t rows = 0;
  uint64_t on_disk = 0;  // of the rows
  uint64_t waiting = 0;  // ids that wait for their admission
  uint64_t bytes = 0;    // of memory, with slots and the index
  uint64_t dropped = 0;  // gradients of rows that waited
  uint64_t removed = 0;  // rows that were removed because nothing touched them
  uint64_t reads = 0;    // ids that were read
  uint64_t hits = 0;     // of them, those that were rows
  // The steps since a gradient touched a row, summed over all rows. Estimated.
  double ages = 0;
  std::vector<HotRow> hottest = {};  // the rows that were read most, estimated; the hottest first

  double mean_age() const { return rows == 0 ? 0 : ages / static_cast<double>(rows); }

  auto Fields() const {
    return std::tie(rows, on_disk, waiting, bytes, dropped, removed, reads, hits, ages, hottest);
  }
  bool operator==(const TableStatus& other) const { return Fields() == other.Fields(); }
};

// The sum over two servers, which have different rows.
TableStatus operator+(const TableStatus& a, const TableStatus& b);

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TABLE_STATUS_H_
