// Decides whether a quantity stays constant while a program runs.
//
// A course is a series of values measured at equal intervals. Its first quarter is the program's
// warm-up and is ignored. The course is flat if the median of the last quarter is not larger than
// the median of the second quarter plus a tolerance for noise. A small steady leak raises the last
// median by half of what leaks in the whole run, however noisy the single values are.

#ifndef SLUICE_TESTS_SOAK_FLATNESS_H_
#define SLUICE_TESTS_SOAK_FLATNESS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// Fewer values have no quarters.
inline constexpr size_t kFewestValues = 4;

// The later median may be `factor` times the earlier one, and `slack` more.
struct Allowance {
  double factor = 1;
  double slack = 0;
};

struct Course {
  std::string name;  // with its unit: "rss_mb"
  Allowance allowance;
  std::vector<double> values;  // in order of time
};

struct Flatness {
  double earlier = 0;  // the second quarter's median
  double later = 0;    // the last quarter's
  double limit = 0;    // of `later`
  bool flat = false;
};

// INVALID_ARGUMENT if there are fewer than kFewestValues values.
absl::StatusOr<Flatness> Judge(const Course& course);

// "rss_mb: 41.2 in the second quarter, 41.5 in the last, at most 47.3 allowed: flat".
std::string Describe(const Course& course, const Flatness& flatness);

}  // namespace sluice

#endif  // SLUICE_TESTS_SOAK_FLATNESS_H_
