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
  if (!begun()) memory_.very_first = loss;
  latest_ = loss;
  if (!known_) {
    first_losses_.push_back(loss);
    if (first_losses_.size() == kFirst) Learn();
    return;
  }
  const double most = memory_.first + memory_.slack;
  memory_.smoothed +=
      (Bounded(loss, memory_.smoothed, most, memory_.slack) - memory_.smoothed) / kSmoothing;
  memory_.best = std::min(memory_.best, memory_.smoothed);
}

void LossTrend::Learn() {
  const std::vector<double> losses = std::exchange(first_losses_, {});
  const double median = Median(losses);
  const double spread = Spread(losses);
  if (median == 0 && spread == 0) return;  // most of them are 0
  const double slack = SlackOf(median, spread);
  double sums[2] = {0, 0};  // of each half
  for (size_t i = 0; i < kFirst; ++i) {
    sums[2 * i / kFirst] += Bounded(losses[i], median, median + slack, slack);
  }
  const double earlier = sums[0] / (kFirst / 2);
  const double later = sums[1] / (kFirst / 2);
  memory_.smoothed = memory_.best = (earlier + later) / 2;
  // Losses that rise among the first ones are not those of the beginning.
  const bool rose = later - earlier > std::max(kLeastFall * std::abs(earlier), spread);
  const double typical = Median({losses.begin(), losses.begin() + kVeryFirst});
  memory_.first =
      std::max(rose ? earlier : memory_.smoothed, std::min(memory_.very_first, typical));
  // Chance makes a mean of the first losses differ by an eighth of the spread, and so the average.
  memory_.margin = std::max(kLeastFall * std::abs(memory_.first), spread / 8);
  memory_.slack = SlackOf(memory_.first, spread);
  known_ = true;
}

void LossTrend::Restore(const LossMemory& memory) {
  memory_ = memory;
  latest_ = memory.smoothed;
  known_ = true;
}

absl::optional<LossMemory> LossTrend::memory() const {
  if (!known_) return absl::nullopt;
  return memory_;
}

bool LossTrend::worsened() const {
  return begun() && latest_ > memory_.very_first + kMuch * std::abs(memory_.very_first);
}

double LossTrend::Fallen() const {
  const double very_first = memory_.very_first;
  return std::max(memory_.first - memory_.margin, very_first - kMuch * std::abs(very_first));
}

double LossTrend::Limit() const {
  return (had_fallen() ? (memory_.first + memory_.best) / 2 : memory_.first) + memory_.slack;
}

}  // namespace sluice
