#include "server/web/history/span_window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sluice {
namespace {

constexpr double kShortest = 1e-6;  // seconds; the first bucket ends here
constexpr auto kStepIndex = static_cast<size_t>(ServerSpan::kStep);

}  // namespace

SpanSummary::SpanSummary() {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  step_median = step_p99 = kUnknown;
  mean.fill(kUnknown);
}

size_t SpanWindow::BucketOf(double seconds) {
  if (seconds <= kShortest) return 0;
  const double bucket = std::ceil(kOfADoubling * std::log2(seconds / kShortest));
  return static_cast<size_t>(std::min(bucket, static_cast<double>(kBuckets - 1)));
}

void SpanWindow::Observe(ServerSpan span, absl::Duration length) {
  const auto index = static_cast<size_t>(span);
  const double seconds = absl::ToDoubleSeconds(length);
  const size_t bucket = BucketOf(seconds);
  const absl::MutexLock lock(&mu_);
  ++seen_.counts[index];
  seen_.seconds[index] += seconds;
  if (span != ServerSpan::kStep) return;
  ++seen_.steps[bucket];
  seen_.longest_step = std::max(seen_.longest_step, seconds);
}

// The end of the bucket that has the step of this rank.
double SpanWindow::Quantile(const Seen& seen, double share) {
  const auto rank =
      static_cast<uint64_t>(std::ceil(share * static_cast<double>(seen.counts[kStepIndex])));
  uint64_t below = 0;
  for (size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    below += seen.steps[bucket];
    if (below < rank) continue;
    const double end = kShortest * std::exp2(static_cast<double>(bucket) / kOfADoubling);
    return std::min(end, seen.longest_step);
  }
  return seen.longest_step;
}

SpanSummary SpanWindow::Take() {
  Seen seen;
  {
    const absl::MutexLock lock(&mu_);
    seen = std::exchange(seen_, Seen());
  }
  SpanSummary summary;
  for (size_t span = 0; span < kServerSpans; ++span) {
    if (seen.counts[span] == 0) continue;
    summary.mean[span] = seen.seconds[span] / static_cast<double>(seen.counts[span]);
  }
  if (seen.counts[kStepIndex] == 0) return summary;
  summary.step_median = Quantile(seen, 0.5);
  summary.step_p99 = Quantile(seen, 0.99);
  return summary;
}

}  // namespace sluice
