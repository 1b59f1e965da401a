#include "server/aggregation/parameter_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

constexpr uint64_t kAveraged = 1000;
constexpr double kLargestGap = 1e30;  // a float has room for more

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

}  // namespace

void ParameterHistory::Add(const std::vector<float>& sample, uint64_t decays) {
  Entry entry;
  if (entries_.size() == kSteps) {
    entry = std::move(entries_.front());
    entries_.pop_front();
  }
  entry.sample = sample;
  entry.decays = decays;
  if (!entries_.empty()) {
    const double step = Distance(entries_.back().sample, entry.sample);
    // Steps that were left out, and those that did not touch the sample, say nothing of a step's
    // length.
    if (step > 0) {
      steps_ = std::min(steps_ + 1, kAveraged);
      mean_step_ += (step - mean_step_) / static_cast<double>(steps_);
    }
  }
  entries_.push_back(std::move(entry));
}

double ParameterHistory::GapSince(uint64_t staleness) const {
  if (entries_.empty() || mean_step_ == 0) return 1;
  const double distance = Distance(entries_.back().sample, Before(staleness).sample);
  return std::min(1 + distance / mean_step_, kLargestGap);
}

uint64_t ParameterHistory::DecaysSince(uint64_t staleness) const {
  return entries_.empty() ? 0 : entries_.back().decays - Before(staleness).decays;
}

const ParameterHistory::Entry& ParameterHistory::Before(uint64_t staleness) const {
  return entries_[entries_.size() - 1 - std::min<uint64_t>(staleness, entries_.size() - 1)];
}

}  // namespace sluice
