#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
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

// Adds those of a named model to the job's. Both have the same families, in the same order, but for
// those that depend on what a model has.
void AddWithModel(const std::string& name, MetricFamilies named, MetricFamilies* families) {
  for (prometheus::MetricFamily& family : named) {
    for (prometheus::ClientMetric& metric : family.metric) {
      metric.label.push_back({"model", name});
    }
    const auto same = std::find_if(families->begin(), families->end(),
                                   [&](const auto& other) { return other.name == family.name; });
    if (same == families->end()) {
      families->push_back(std::move(family));
    } else {
      same->metric.insert(same->metric.end(), std::make_move_iterator(family.metric.begin()),
                          std::make_move_iterator(family.metric.end()));
    }
  }
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

void ServerMetrics::AddNamed(NamedShards named) {
  absl::MutexLock lock(&mu_);
  named_ = std::move(named);
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
      JobMoment moment = MomentOfServers(shard_->Describe(), *shard_, durable_);
      JudgeJob(named_, &moment.state);
      MetricFamilies of_job = ShardFamilies(moment);
      for (const NamedShard& named : named_ ? named_() : std::vector<NamedShard>()) {
        AddWithModel(
            named.name,
            ShardFamilies(MomentOfServers(named.shard->Describe(), *named.shard, named.durable)),
            &of_job);
      }
      Append(std::move(of_job), &families);
      Append(spans_->Collect(), &families);
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sluice
