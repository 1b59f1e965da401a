// Quantiles of measured values.

#ifndef SLUICE_TESTS_TESTING_QUANTILE_H_
#define SLUICE_TESTS_TESTING_QUANTILE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice {

// Sorts the n values and returns the one at index `share` · n, rounded down and at most n − 1. n is
// at least 1, and `share` is in [0, 1]. 0.5 gives the median; if n is even, the upper one.
template <typename T>
T Quantile(std::vector<T> values, double share) {
  const auto place = static_cast<size_t>(share * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(place, values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_QUANTILE_H_
