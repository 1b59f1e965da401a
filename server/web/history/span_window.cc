#include "server/web/history/span_window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sluice {
namespace {

constexpr double kShortest = 1e-6;  // seconds; the first bucket ends here

}  // namespace

SpanSummary::SpanSummary() {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  step_median = step_p99 = sync_median = sync_p99 = kUnknown;
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
  if (span == ServerSpan::kStep) Add(seconds, bucket, &seen_.steps);
  if (span == ServerSpan::kJournalSync) Add(seconds, bucket, &seen_.syncs);
}

void SpanWindow::Add(double seconds, size_t bucket, Lengths* to) {
  ++to->counts[bucket];
  ++to->count;
  to->longest = std::max(to->longest, seconds);
}

// The end of the bucket that has the span of this rank.
double SpanWindow::Quantile(const Lengths& seen, double share) {
  if (seen.count == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(seen.count)));
  uint64_t below = 0;
  for (size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    below += seen.counts[bucket];
    if (below < rank) continue;
    const double end = kShortest * std::exp2(static_cast<double>(bucket) / kOfADoubling);
    return std::min(end, seen.longest);
  }
  return seen.longest;
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
  summary.step_median = Quantile(seen.steps, 0.5);
  summary.step_p99 = Quantile(seen.steps, 0.99);
  summary.sync_median = Quantile(seen.syncs, 0.5);
  summary.sync_p99 = Quantile(seen.syncs, 0.99);
  return summary;
}

}  // namespace sluice
