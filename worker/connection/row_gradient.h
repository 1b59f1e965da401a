// The gradients of rows that a push brings beside the vector's, and the rows of a pull. Pure
// functions.

#ifndef SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_
#define SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/encoding/encoding.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// Of one table: a row of its width for each id, in the order of the ids.
struct RowGradient {
  RowIds rows;
  SharedFloats values;
  Encoding encoding = {};  // in which the values are sent; not of matrices
};

// In ascending order of their tables, each once.
using RowGradients = std::vector<RowGradient>;

// Ids that a server takes in one pull of rows.
inline constexpr size_t kMaxPulledIds = 400'000;

// `tables` are the layout's, and the rows are of them.
uint64_t ElementsOf(const std::vector<RowIds>& rows, const std::vector<TableSpec>& tables);
uint64_t ElementsOf(const RowGradients& gradients);
// What PushHeader::row_bytes counts.
uint64_t RowBytesOf(const RowGradients& gradients);

// The ids of which one server holds the rows, and their places among all ids.
struct RowsOfServer {
  std::vector<RowIds> rows;
  // For each of them, in their order: the number of its row among all rows.
  std::vector<uint64_t> places;
};

// The same ids in parts of at most `most` ids, in their order. No ids: no part.
std::vector<std::vector<RowIds>> PartsOf(const std::vector<RowIds>& rows, size_t most);

// One entry for each of so many servers. An entry has the tables of which the server has rows.
std::vector<RowsOfServer> SplitRows(const std::vector<RowIds>& rows, uint32_t servers);
std::vector<RowGradients> SplitRows(const RowGradients& gradients, uint32_t servers);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_
