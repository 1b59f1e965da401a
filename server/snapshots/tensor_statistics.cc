#include "server/snapshots/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sluice {

TensorStatistics Summarize(absl::Span<const float> values) {
  TensorStatistics result;
  result.min = result.max = values[0];
  // Deviations from the first value are summed, because squares of the values themselves cancel.
  const double pivot = values[0];
  double sum = 0;
  double squares = 0;
  double norm = 0;
  size_t zeros = 0;
  for (const float value : values) {
    result.min = std::min(result.min, value);
    result.max = std::max(result.max, value);
    const double deviation = value - pivot;
    sum += deviation;
    squares += deviation * deviation;
    norm += static_cast<double>(value) * value;
    zeros += value == 0 ? 1 : 0;
  }
  const double count = static_cast<double>(values.size());
  const double mean_deviation = sum / count;
  result.mean = pivot + mean_deviation;
  result.standard_deviation =
      std::sqrt(std::max(0.0, squares / count - mean_deviation * mean_deviation));
  result.l2_norm = std::sqrt(norm);
  result.zero_share = static_cast<double>(zeros) / count;
  return result;
}

}  // namespace sluice
