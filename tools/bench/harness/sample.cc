#include "tools/bench/harness/sample.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::bench {
namespace {

void Add(const GroupUsage& before, const GroupUsage& after, Measurement& measurement) {
  measurement.server_cpu_seconds += after.server.cpu_seconds - before.server.cpu_seconds;
  measurement.workers_cpu_seconds += after.workers.cpu_seconds - before.workers.cpu_seconds;
  measurement.server_peak_bytes = std::max(measurement.server_peak_bytes, after.server.peak_bytes);
  measurement.worker_peak_bytes = std::max(measurement.worker_peak_bytes, after.workers.peak_bytes);
}

absl::Status RunRounds(ProcessGroup& process_group, uint32_t rounds, std::vector<double>& seconds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto slowest = process_group.RunRound();
    if (!slowest.ok()) return slowest.status();
    seconds.push_back(*slowest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureSample(const Cell& cell, const Programs& programs, uint32_t rounds,
                           Measurement& measurement) {
  const auto process_group = ProcessGroup::Start(cell, programs);
  if (!process_group.ok()) return process_group.status();
  std::vector<double> forgotten;
  const absl::Status warm =
      RunRounds(**process_group, cell.row.warms_up_at_once ? 1 : kWarmUpRounds, forgotten);
  if (!warm.ok()) return warm;
  const auto before = (*process_group)->AskUsage();
  if (!before.ok()) return before.status();
  const absl::Status measured = RunRounds(**process_group, rounds, measurement.seconds);
  if (!measured.ok()) return measured;
  const auto after = (*process_group)->AskUsage();
  if (!after.ok()) return after.status();
  Add(*before, *after, measurement);
  return (*process_group)->End();
}

}  // namespace sluice::bench
