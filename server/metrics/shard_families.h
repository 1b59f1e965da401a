// Turns the state of a server into Prometheus' metrics. README.md lists them.

#ifndef SLUICE_SERVER_METRICS_SHARD_FAMILIES_H_
#define SLUICE_SERVER_METRICS_SHARD_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "absl/time/time.h"
#include "server/observe/job_moment.h"

namespace sluice {

// A step that has waited for less names nobody: otherwise each scrape would show other workers, and
// Prometheus would store a series for each.
inline constexpr absl::Duration kNamedAfter = absl::Seconds(1);

// At most 16 workers are named, and `moment` may lack its workers. Any thread may call it.
std::vector<prometheus::MetricFamily> ShardFamilies(const JobMoment& moment);

// Families about this process, as the kernel counts it. They need no shard.
std::vector<prometheus::MetricFamily> ProcessFamilies();

}  // namespace sluice

#endif  // SLUICE_SERVER_METRICS_SHARD_FAMILIES_H_
