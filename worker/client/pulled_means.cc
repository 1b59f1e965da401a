#include "worker/client/pulled_means.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

// A running variance is never negative, and must not become so where a value minus its part is
// rounded down. So the part is smaller than what is left by more than roundings make of it.
constexpr float kLess = 1 - 1e-6f;

}  // namespace

PulledMeans::PulledMeans(RunningMeans elements, const Layout& layout)
    : elements_(std::move(elements)) {
  for (const LayoutRange& range : layout.ranges()) {
    if (range.dtype == DataType::kInt64) counts_.insert(range.offset);
  }
}

void PulledMeans::Keep(absl::Span<const float> parameters) {
  values_.clear();
  for (const RunningMean& part : elements_) {
    values_.insert(values_.end(), parameters.begin() + part.begin, parameters.begin() + part.end);
    // The mean of several workers' counts may lie between two; a worker has the nearest.
    if (counts_.contains(part.begin)) values_.back() = std::nearbyint(values_.back());
  }
}

RunningMeans PulledMeans::Subtract(const RunningMeans& means, bool whole_only,
                                   absl::Span<float> pushed) const {
  RunningMeans told;
  if (values_.empty()) return told;
  const float* pulled = values_.data();
  auto part = elements_.begin();
  for (const RunningMean& mean : means) {
    for (; part != elements_.end() && part->begin < mean.end; ++part) {
      const uint64_t begin = std::max(mean.begin, part->begin);
      const uint64_t end = std::min(mean.end, part->end);
      if (begin < end) {
        Take({begin, end, mean.decay}, pulled + (begin - part->begin), whole_only,
             pushed.subspan(begin, end - begin), &told);
      }
      if (part->end > mean.end) break;  // the next mean may have the rest
      pulled += part->end - part->begin;
    }
  }
  return told;
}

void PulledMeans::Take(const RunningMean& mean, const float* pulled, bool whole_only,
                       absl::Span<float> pushed, RunningMeans* told) const {
  if (mean.decay == 1) {
    const bool is_same = std::memcmp(pulled, pushed.data(), pushed.size() * sizeof(float)) == 0;
    if (!is_same && !counts_.contains(mean.begin)) return;
    for (size_t i = 0; i < pushed.size(); ++i) {
      // -0 and 0 are 0, and -0 and -0 are -0.
      const float nothing = pulled[i] == 0 ? pulled[i] : 0;
      pushed[i] = is_same ? nothing : pushed[i] - pulled[i];
    }
    Append(mean, told);
    return;
  }
  if (whole_only) return;
  const float decay = mean.decay * kLess;
  for (size_t i = 0; i < pushed.size(); ++i) pushed[i] -= decay * pulled[i];
  Append({mean.begin, mean.end, decay}, told);
}

}  // namespace sluice
