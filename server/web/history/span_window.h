// How long steps, their parts and syncs of the journal took since the last look, in memory that
// does not grow.

#ifndef SLUICE_SERVER_WEB_HISTORY_SPAN_WINDOW_H_
#define SLUICE_SERVER_WEB_HISTORY_SPAN_WINDOW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/state/server_span.h"

namespace sluice {

// Seconds. NaN: nothing of that kind was seen.
struct SpanSummary {
  SpanSummary();

  double step_median = 0;  // of single steps, as is the next
  double step_p99 = 0;
  double sync_median = 0;  // of single syncs of the journal, as is the next
  double sync_p99 = 0;
  std::array<double, kServerSpans> mean{};  // by ServerSpan
};

// Any thread may call any method. Observe() takes some 40 ns.
class SpanWindow {
 public:
  void Observe(ServerSpan span, absl::Duration length) ABSL_LOCKS_EXCLUDED(mu_);

  // Summarizes what was observed since the last call. The median and p99 are of the method nearest
  // rank. They are at most 9.1 % above the true value, and never above the longest one.
  SpanSummary Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Eight buckets for each doubling, from 1 µs to 18 minutes.
  static constexpr int kOfADoubling = 8;
  static constexpr size_t kBuckets = 30 * kOfADoubling + 1;

  // Spans of one kind, by their length.
  struct Lengths {
    std::array<uint64_t, kBuckets> counts{};
    uint64_t count = 0;
    double longest = 0;
  };
  struct Seen {
    std::array<uint64_t, kServerSpans> counts{};
    std::array<double, kServerSpans> seconds{};  // the sum
    Lengths steps;
    Lengths syncs;
  };

  static void Add(double seconds, size_t bucket, Lengths* to);
  static size_t BucketOf(double seconds);
  static double Quantile(const Lengths& seen, double share);

  absl::Mutex mu_;
  Seen seen_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_SPAN_WINDOW_H_
