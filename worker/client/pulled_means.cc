#include "worker/client/pulled_means.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// A running variance is never negative, and must not become so where a value minus its part is
// rounded down. So the part is smaller than what is left by more than roundings make of it.
constexpr float kLess = 1 - 1e-6f;

}  // namespace

PulledMeans::PulledMeans(RunningMeans elements) : elements_(std::move(elements)) {}

void PulledMeans::Keep(absl::Span<const float> parameters) {
  values_.clear();
  for (const RunningMean& part : elements_) {
    values_.insert(values_.end(), parameters.begin() + part.begin, parameters.begin() + part.end);
  }
}

RunningMeans PulledMeans::Subtract(const RunningMeans& means, absl::Span<float> pushed) const {
  RunningMeans told;
  if (values_.empty()) return told;
  const float* pulled = values_.data();
  for (const RunningMean& part : elements_) {
    const auto subtract = [&](const RunningMean& mean, uint64_t begin, uint64_t end) {
      const float* const from = pulled + (begin - part.begin);
      // No batch has changed what is left whole. If it has changed all the same, it was set by
      // hand.
      const bool is_set =
          mean.decay == 1 && !std::equal(from, from + (end - begin), &pushed[begin]);
      if (is_set) return;
      const float decay = mean.decay * kLess;
      for (uint64_t i = begin; i < end; ++i) pushed[i] -= decay * from[i - begin];
      Append({begin, end, decay}, &told);
    };
    ForEachRunningMean(means, part.begin, part.end, subtract);
    pulled += part.end - part.begin;
  }
  return told;
}

}  // namespace sluice
