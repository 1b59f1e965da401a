// Statistics of a tensor's values, which the Inspector shows to people.
//
// They are computed for each unit of the vector (common/tensor/stripes.h), and combined in the
// order of the units. So they have the same bits with any number of servers.

#ifndef SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_
#define SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace sluice {

struct TensorStatistics {
  float min = 0;
  float max = 0;
  double mean = 0;
  double standard_deviation = 0;  // of the population
  double l2_norm = 0;
  double zero_share = 0;  // share of elements that are exactly 0
};

// Of the elements of a tensor that lie in one unit.
struct UnitStatistics {
  float min = 0;
  float max = 0;
  double mean = 0;
  double deviations = 0;  // the sum of the squares of the deviations from the mean
  double squares = 0;     // the sum of the squares
  uint64_t zeros = 0;     // elements that are exactly 0
};

// `values` are finite and not empty. Reads them once.
UnitStatistics Summarize(absl::Span<const float> values);

// Externally synchronized.
class CombinedStatistics {
 public:
  // The next unit has so many elements of the tensor, at least 1.
  void Add(const UnitStatistics& unit, uint64_t elements);

  // At least one unit was added.
  TensorStatistics Get() const;

 private:
  UnitStatistics all_;
  uint64_t elements_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_
