#include "server/metrics/families.h"

namespace sluice {

void Families::Begin(const char* name, const char* help, prometheus::MetricType type) {
  families_.push_back({name, help, type, {}});
}

void Families::Add(MetricLabels labels, double value) {
  prometheus::MetricFamily& family = families_.back();
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

void Families::Histogram(const char* name, const char* help,
                         const prometheus::ClientMetric::Histogram& values) {
  Begin(name, help, prometheus::MetricType::Histogram);
  prometheus::ClientMetric metric;
  metric.histogram = values;
  families_.back().metric.push_back(std::move(metric));
}

prometheus::ClientMetric::Label ServerLabel() { return {"server", "0"}; }

}  // namespace sluice
