// Statistics of a tensor's values, which the Inspector shows to people.

#ifndef SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_
#define SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_

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

// `values` are finite and not empty. Reads them once.
TensorStatistics Summarize(absl::Span<const float> values);

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_TENSOR_STATISTICS_H_
