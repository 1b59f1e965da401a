#include "worker/data/zipf_law.h"

#include <algorithm>
#include <cmath>

namespace sluice {

ZipfLaw::ZipfLaw(uint64_t count, double exponent)
    : count_(static_cast<double>(count)),
      exponent_(exponent),
      lowest_(Integral(1.5) - 1),
      highest_(Integral(count_ + 0.5)) {}

double ZipfLaw::Integral(double x) const {
  return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_);
}

double ZipfLaw::InverseOfIntegral(double area) const {
  return std::pow(1 + area * (1 - exponent_), 1 / (1 - exponent_));
}

// Below the curve, between k − 0.5 and k + 0.5, there is more area than in the bar of k, since the
// curve is convex. A point of the area that is not in the bar is drawn again.
uint64_t ZipfLaw::Draw(absl::FunctionRef<double()> uniform) const {
  while (true) {
    const double point = lowest_ + uniform() * (highest_ - lowest_);
    const double k = std::min(std::max(std::round(InverseOfIntegral(point)), 1.0), count_);
    const double bar_begins = Integral(k + 0.5) - std::pow(k, -exponent_);
    if (point >= bar_begins) return static_cast<uint64_t>(k) - 1;
  }
}

}  // namespace sluice
