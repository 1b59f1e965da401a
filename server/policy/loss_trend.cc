#include "server/policy/loss_trend.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

// The standard deviation of a normal distribution, in median distances of two of its numbers.
constexpr double kDeviations = 1.0484;

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

// How much one loss differs from the next, whatever single ones do, and also if they fall.
double Spread(const std::vector<double>& losses) {
  std::vector<double> distances;
  for (size_t i = 1; i < losses.size(); ++i) {
    distances.push_back(std::abs(losses[i] - losses[i - 1]));
  }
  return kDeviations * Median(std::move(distances));
}

double SlackOf(double loss, double spread) {
  return std::max(LossTrend::kLeastRise * std::abs(loss), 4 * spread);
}

double Bounded(double loss, double average, double most, double slack) {
  return std::min(std::max(loss, average - LossTrend::kMostDrop * slack), most);
}

}  // namespace

void LossTrend::Add(double loss) {
  if (!begun() && loss == 0) return;
  latest_ = loss;
  if (!known()) {
    first_losses_.push_back(loss);
    if (known()) Learn();
    return;
  }
  smoothed_ += (Bounded(loss, smoothed_, first_ + slack_, slack_) - smoothed_) / kSmoothing;
  best_ = std::min(best_, smoothed_);
}

void LossTrend::Learn() {
  const double median = Median(first_losses_);
  const double spread = Spread(first_losses_);
  if (median == 0 && spread == 0) {  // most of them are 0
    first_losses_.clear();
    return;
  }
  const double slack = SlackOf(median, spread);
  double sums[2] = {0, 0};  // of each half
  for (size_t i = 0; i < kFirst; ++i) {
    sums[2 * i / kFirst] += Bounded(first_losses_[i], median, median + slack, slack);
  }
  const double earlier = sums[0] / (kFirst / 2);
  const double later = sums[1] / (kFirst / 2);
  smoothed_ = best_ = (earlier + later) / 2;
  // Losses that rise among the first ones are not those of the beginning.
  const bool rose = later - earlier > std::max(kLeastFall * std::abs(earlier), spread);
  first_ = std::max(first_losses_.front(), rose ? earlier : smoothed_);
  // Chance makes a mean of the first losses differ by an eighth of the spread, and so the average.
  margin_ = std::max(kLeastFall * std::abs(first_), spread / 8);
  slack_ = SlackOf(first_, spread);
}

bool LossTrend::worsened() const {
  if (!begun()) return false;
  const double first = first_losses_.front();
  return latest_ > first + kMuchRise * std::abs(first);
}

double LossTrend::Limit() const { return (had_fallen() ? (first_ + best_) / 2 : first_) + slack_; }

}  // namespace sluice
