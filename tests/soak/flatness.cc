#include "tests/soak/flatness.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/testing/quantile.h"

namespace sluice {

absl::StatusOr<Flatness> Judge(const Course& course) {
  const std::vector<double>& values = course.values;
  if (values.size() < kFewestValues) {
    return absl::InvalidArgumentError(absl::StrCat(course.name, " was measured ", values.size(),
                                                   " times, expected ", kFewestValues,
                                                   " or more; let it run for longer"));
  }
  const auto median = [&](size_t from, size_t to) {
    return Quantile(std::vector<double>(values.begin() + from, values.begin() + to), 0.5);
  };
  const size_t n = values.size();
  Flatness flatness;
  flatness.earlier = median(n / 4, n / 2);
  flatness.later = median(n - n / 4, n);
  flatness.limit = flatness.earlier * course.allowance.factor + course.allowance.slack;
  flatness.flat = flatness.later <= flatness.limit;
  return flatness;
}

std::string Describe(const Course& course, const Flatness& flatness) {
  return absl::StrFormat(
      "%s: %.4g in the second quarter, %.4g in the last, at most %.4g allowed: %s", course.name,
      flatness.earlier, flatness.later, flatness.limit, flatness.flat ? "flat" : "NOT FLAT");
}

}  // namespace sluice
