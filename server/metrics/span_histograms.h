// Histograms of how long the parts of a server's work take. They alone are counted as things
// happen; all other metrics are read when they are asked for.

#ifndef SLUICE_SERVER_METRICS_SPAN_HISTOGRAMS_H_
#define SLUICE_SERVER_METRICS_SPAN_HISTOGRAMS_H_

#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "server/state/server_span.h"

namespace sluice {

// Of one incarnation. Any thread may call any method.
class SpanHistograms {
 public:
  SpanHistograms();

  void Observe(ServerSpan span, absl::Duration length) {
    of_span_[static_cast<size_t>(span)]->Observe(absl::ToDoubleSeconds(length));
  }

  std::vector<prometheus::MetricFamily> Collect() const { return registry_.Collect(); }

 private:
  prometheus::Registry registry_;
  std::array<prometheus::Histogram*, kServerSpans> of_span_{};  // the registry owns them
};

}  // namespace sluice

#endif  // SLUICE_SERVER_METRICS_SPAN_HISTOGRAMS_H_
