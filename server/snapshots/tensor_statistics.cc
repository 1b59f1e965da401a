#include "server/snapshots/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sluice {

UnitStatistics Summarize(absl::Span<const float> values) {
  UnitStatistics result;
  result.min = result.max = values[0];
  // Deviations from the first value are summed, because squares of the values themselves cancel.
  const double pivot = values[0];
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    result.min = std::min(result.min, value);
    result.max = std::max(result.max, value);
    const double deviation = value - pivot;
    sum += deviation;
    squares += deviation * deviation;
    result.squares += static_cast<double>(value) * value;
    result.zeros += value == 0 ? 1 : 0;
  }
  const double mean_deviation = sum / static_cast<double>(values.size());
  result.mean = pivot + mean_deviation;
  result.deviations = std::max(0.0, squares - sum * mean_deviation);
  return result;
}

// T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances", 1979, eq. 2.1.
void CombinedStatistics::Add(const UnitStatistics& unit, uint64_t elements) {
  if (elements_ == 0) {
    all_ = unit;
    elements_ = elements;
    return;
  }
  const auto before = static_cast<double>(elements_);
  elements_ += elements;
  const double share = static_cast<double>(elements) / static_cast<double>(elements_);
  const double apart = unit.mean - all_.mean;
  all_.min = std::min(all_.min, unit.min);
  all_.max = std::max(all_.max, unit.max);
  all_.mean += apart * share;
  all_.deviations += unit.deviations + apart * apart * before * share;
  all_.squares += unit.squares;
  all_.zeros += unit.zeros;
}

TensorStatistics CombinedStatistics::Get() const {
  const auto count = static_cast<double>(elements_);
  TensorStatistics result;
  result.min = all_.min;
  result.max = all_.max;
  result.mean = all_.mean;
  result.standard_deviation = std::sqrt(all_.deviations / count);
  result.l2_norm = std::sqrt(all_.squares);
  result.zero_share = static_cast<double>(all_.zeros) / count;
  return result;
}

}  // namespace sluice
