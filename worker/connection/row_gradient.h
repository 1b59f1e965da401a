// The gradients of rows that a push brings beside the vector's. Pure functions.

#ifndef SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_
#define SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"

namespace sluice {

// Of one table: a row of its width for each id, in the order of the ids.
struct RowGradient {
  RowIds rows;
  SharedFloats values;
};

// In ascending order of their tables, each once.
using RowGradients = std::vector<RowGradient>;

uint64_t ElementsOf(const RowGradients& gradients);
// What PushHeader::row_bytes counts.
uint64_t RowBytesOf(const RowGradients& gradients);

// The ids of which one server holds the rows, and their places among all ids.
struct RowsOfServer {
  std::vector<RowIds> rows;
  // For each of them, in their order: the number of its row among all rows.
  std::vector<uint64_t> places;
};

// One entry for each of so many servers. An entry has the tables of which the server has rows.
std::vector<RowsOfServer> SplitRows(const std::vector<RowIds>& rows, uint32_t servers);
std::vector<RowGradients> SplitRows(const RowGradients& gradients, uint32_t servers);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_ROW_GRADIENT_H_
