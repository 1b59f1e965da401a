#include "tools/bench/harness/line_fit.h"

namespace sluice::bench {

absl::optional<Line> FitLine(const std::vector<Point>& points) {
  Point mean;
  for (const Point& point : points) {
    mean.x += point.x / static_cast<double>(points.size());
    mean.y += point.y / static_cast<double>(points.size());
  }
  double xx = 0, xy = 0, yy = 0;
  for (const Point& point : points) {
    xx += (point.x - mean.x) * (point.x - mean.x);
    xy += (point.x - mean.x) * (point.y - mean.y);
    yy += (point.y - mean.y) * (point.y - mean.y);
  }
  if (xx == 0) return absl::nullopt;
  Line line;
  line.slope = xy / xx;
  line.intercept = mean.y - line.slope * mean.x;
  line.explained = yy == 0 ? 1 : xy * xy / (xx * yy);
  return line;
}

}  // namespace sluice::bench
