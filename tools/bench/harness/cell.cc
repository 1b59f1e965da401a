#include "tools/bench/harness/cell.h"

#include <algorithm>
#include <cmath>

namespace sluice::bench {

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

double ServerCpuPerRound(const Measurement& measurement) {
  return measurement.server_cpu_seconds / static_cast<double>(measurement.seconds.size());
}

double WorkersCpuPerRound(const Measurement& measurement) {
  return measurement.workers_cpu_seconds / static_cast<double>(measurement.seconds.size());
}

uint64_t ElementsOf(double megabytes) {
  return static_cast<uint64_t>(std::ceil(megabytes * 1e6 / sizeof(float)));
}

}  // namespace sluice::bench
