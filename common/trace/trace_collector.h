// Collects the spans of a Trace for a while, to show them to somebody who asks while a job runs.

#ifndef SLUICE_COMMON_TRACE_TRACE_COLLECTOR_H_
#define SLUICE_COMMON_TRACE_TRACE_COLLECTOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/trace/trace.h"
#include "common/trace/trace_event.h"

namespace sluice {

// Any thread may call Take().
class TraceCollector {
 public:
  static constexpr size_t kMostWaiting = 16384;  // spans between two calls of Take()

  // Collects until it is destroyed. `trace` outlives it.
  explicit TraceCollector(Trace& trace);
  ~TraceCollector();

  TraceCollector(const TraceCollector&) = delete;
  TraceCollector& operator=(const TraceCollector&) = delete;

  struct Taken {
    std::string events;   // JSON objects, separated by ",\n"; at most some 3 MB
    uint64_t spans = 0;   // among them
    uint64_t missed = 0;  // spans that had no room
  };
  // Returns what has come since the last call. A row's name comes with its first span.
  Taken Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class Trace;
  void Note(const TraceEvent& span, absl::string_view row) ABSL_LOCKS_EXCLUDED(mu_);

  Trace& trace_;
  absl::Mutex mu_;
  std::vector<TraceEvent> waiting_ ABSL_GUARDED_BY(mu_);
  uint64_t missed_ ABSL_GUARDED_BY(mu_) = 0;
  std::string names_ ABSL_GUARDED_BY(mu_);  // that Take() did not give yet
  absl::flat_hash_set<int> named_rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TRACE_TRACE_COLLECTOR_H_
