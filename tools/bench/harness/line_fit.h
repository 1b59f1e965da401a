// Fits a straight line to measurements.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_LINE_FIT_H_
#define SLUICE_TOOLS_BENCH_HARNESS_LINE_FIT_H_

#include <vector>

#include "absl/types/optional.h"

namespace sluice::bench {

struct Point {
  double x = 0;
  double y = 0;
};

// y = intercept + slope · x.
struct Line {
  double intercept = 0;
  double slope = 0;
  double explained =
      0;  // R²: the share of y's variance that the line explains; 1 if y never varies
};

// Fits by least squares. Returns nothing unless there are two different x.
absl::optional<Line> FitLine(const std::vector<Point>& points);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_LINE_FIT_H_
