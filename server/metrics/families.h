// Builds families of metrics in prometheus-cpp's types.

#ifndef SLUICE_SERVER_METRICS_FAMILIES_H_
#define SLUICE_SERVER_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

// The families of one scrape, in the order in which they are served. Begin() begins a family; the
// other methods add a value to it. A family may have no value.
class Families {
 public:
  void BeginCounter(const char* name, const char* help) {
    Begin(name, help, prometheus::MetricType::Counter);
  }
  void BeginGauge(const char* name, const char* help) {
    Begin(name, help, prometheus::MetricType::Gauge);
  }

  // Of the family that was begun last, a counter or a gauge.
  void Add(MetricLabels labels, double value);

  // A gauge with one value.
  void Gauge(const char* name, const char* help, double value, MetricLabels labels = {}) {
    BeginGauge(name, help);
    Add(std::move(labels), value);
  }

  void Histogram(const char* name, const char* help,
                 const prometheus::ClientMetric::Histogram& values);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  void Begin(const char* name, const char* help, prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

// Values that are one server's, and not the job's, have this label: several servers of a job can
// then be told apart.
prometheus::ClientMetric::Label ServerLabel();

}  // namespace sluice

#endif  // SLUICE_SERVER_METRICS_FAMILIES_H_
