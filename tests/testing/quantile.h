// Quantiles of what was measured.

#ifndef SLUICE_TESTS_TESTING_QUANTILE_H_
#define SLUICE_TESTS_TESTING_QUANTILE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice {

// The value above which lies no more than 1 − `share` of them; of at least one. `share` is from 0
// to 1: 0.5 is the median, the upper one of an even number.
template <typename T>
T Quantile(std::vector<T> values, double share) {
  const auto place = static_cast<size_t>(share * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(place, values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_QUANTILE_H_
