// Figures of a server that make every metric have a value.

#ifndef SLUICE_TESTS_SERVER_METRICS_FULL_FIGURES_H_
#define SLUICE_TESTS_SERVER_METRICS_FULL_FIGURES_H_

#include <memory>

#include "server/metrics/server_figures.h"

namespace sluice {

// A step has waited for two seconds for worker-1.
inline ServerFigures FullFigures() {
  ServerFigures figures;
  ShardStatus& status = figures.status;
  status.job_id = "2515a06c";
  status.incarnation = Incarnation(3);
  status.phase = Phase::kTraining;
  status.step = Step(17);
  status.now = absl::FromUnixSeconds(1000);
  status.counters.received = 28;
  status.counters.accepted = 7;
  status.counters.stale = 6;
  status.counters.skipped = 5;
  status.counters.duplicate = 4;
  status.counters.rejected = 3;
  status.counters.aborted = 2;
  status.counters.in_progress = 1;
  for (const uint64_t staleness : {0, 0, 2, 100}) status.staleness.Enter(staleness);
  status.expected_workers = 4;
  status.worker_counts.connected = 2;
  status.worker_counts.open = 3;
  status.worker_counts.evicted = 1;
  status.current.since = status.now - absl::Seconds(2);
  status.current.missing = 1;
  status.current.awaited = {{"worker-1", absl::Seconds(5)}};
  status.traffic.bytes_received = 400;
  status.traffic.wire_bytes_received = 130;
  status.traffic.received_by_transform[static_cast<size_t>(ValueTransform::kInt8)] = {400, 120};
  status.measured = {2, {Step(12), {{"test accuracy", 0.75}, {"test loss", 0.5}, {"other", 9}}}};
  status.in_flight = {300, 900, 2};
  status.times.last_step = status.now - absl::Seconds(4);
  status.each_server.resize(2);
  status.each_server[0].connected = true;
  status.each_server[0].awaited = absl::Seconds(3);
  status.each_server[1].elements = 25;
  status.each_server[1].figures = {Step(16), 70, 60, {{5, 4, 300, 2, 1}}};
  LayoutRange bias;
  bias.name = "bias";
  bias.length = 1;
  TableSpec items;
  items.name = "items";
  items.width = 8;
  status.layout = std::make_shared<const Layout>(*Layout::Create({bias}, {items}));
  status.each_server[1].unchanged = absl::Seconds(8);
  figures.executor_tasks = {{"step", 2}};
  figures.checkpoint_age = absl::Minutes(3);
  return figures;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_METRICS_FULL_FIGURES_H_
