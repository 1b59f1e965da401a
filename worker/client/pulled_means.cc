#include "worker/client/pulled_means.h"

#include <algorithm>
#include <cstring>
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

RunningMeans PulledMeans::Subtract(const RunningMeans& means, bool whole_only,
                                   absl::Span<float> pushed) const {
  RunningMeans told;
  if (values_.empty() && !elements_.empty()) return told;
  const float* pulled = values_.data();
  auto part = elements_.begin();
  for (const RunningMean& mean : means) {
    for (uint64_t at = mean.begin; at < mean.end;) {
      for (; part != elements_.end() && part->end <= at; ++part) pulled += part->end - part->begin;
      const bool is_after = part == elements_.end() || part->begin >= mean.end;
      const bool is_kept = !is_after && part->begin <= at;
      const uint64_t end =
          is_after ? mean.end : std::min(mean.end, is_kept ? part->end : part->begin);
      Take({at, end, mean.decay}, is_kept ? pulled + (at - part->begin) : nullptr, whole_only,
           pushed.subspan(at, end - at), &told);
      at = end;
    }
  }
  return told;
}

void PulledMeans::Take(const RunningMean& mean, const float* pulled, bool whole_only,
                       absl::Span<float> pushed, RunningMeans* told) {
  if (mean.decay == 1) {
    // If it has changed all the same, it was set by hand, or is no running mean: it is pushed.
    const bool is_set =
        pulled != nullptr && std::memcmp(pulled, pushed.data(), pushed.size() * sizeof(float)) != 0;
    if (is_set) return;
    std::fill(pushed.begin(), pushed.end(), 0.0f);
    Append(mean, told);
    return;
  }
  if (whole_only || pulled == nullptr) return;
  const float decay = mean.decay * kLess;
  for (size_t i = 0; i < pushed.size(); ++i) pushed[i] -= decay * pulled[i];
  Append({mean.begin, mean.end, decay}, told);
}

}  // namespace sluice
