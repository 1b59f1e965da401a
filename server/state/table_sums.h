// The sums of the rows' gradients of one step: what a journal records of tables, beside the sum of
// the vector.

#ifndef SLUICE_SERVER_STATE_TABLE_SUMS_H_
#define SLUICE_SERVER_STATE_TABLE_SUMS_H_

#include <cstdint>
#include <vector>

#include "common/tensor/table_spec.h"

namespace sluice {

// Of one table.
struct TableSums {
  uint32_t table = 0;         // its index in the layout
  std::vector<RowId> ids;     // that the step touches, in ascending order
  std::vector<float> sums;    // a row for each id
  std::vector<float> shares;  // of the divisor, for each id; see GradientWeight
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TABLE_SUMS_H_
