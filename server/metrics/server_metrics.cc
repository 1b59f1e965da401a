#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

#include "server/metrics/shard_families.h"
#include "server/metrics/span_histograms.h"
#include "server/observe/job_moment.h"

namespace sluice {
namespace {

using MetricFamilies = std::vector<prometheus::MetricFamily>;

void Append(MetricFamilies more, MetricFamilies* families) {
  families->insert(families->end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

}  // namespace

SpanListener ServerMetrics::BeginIncarnation() {
  const auto spans = std::make_shared<SpanHistograms>();
  absl::MutexLock lock(&mu_);
  spans_ = spans;
  return [spans](ServerSpan span, absl::Duration length) { spans->Observe(span, length); };
}

void ServerMetrics::Attach(Shard& shard, const DurableDirectory* durable) {
  absl::MutexLock lock(&mu_);
  shard_ = &shard;
  durable_ = durable;
}

void ServerMetrics::Detach() {
  absl::MutexLock lock(&mu_);
  shard_ = nullptr;
  durable_ = nullptr;
}

std::string ServerMetrics::Text() const {
  MetricFamilies families = ProcessFamilies();
  {
    absl::MutexLock lock(&mu_);
    if (shard_ != nullptr) {
      Append(ShardFamilies(MomentOfServers(shard_->Describe(), *shard_, durable_)), &families);
      Append(spans_->Collect(), &families);
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sluice
