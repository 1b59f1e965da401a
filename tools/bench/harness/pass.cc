#include "tools/bench/harness/pass.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::bench {
namespace {

void Add(const CrewUsage& before, const CrewUsage& after, Measurement& measurement) {
  measurement.server_cpu_seconds += after.server.cpu_seconds - before.server.cpu_seconds;
  measurement.workers_cpu_seconds += after.workers.cpu_seconds - before.workers.cpu_seconds;
  measurement.server_peak_bytes = std::max(measurement.server_peak_bytes, after.server.peak_bytes);
  measurement.worker_peak_bytes = std::max(measurement.worker_peak_bytes, after.workers.peak_bytes);
}

absl::Status RunRounds(Crew& crew, uint32_t rounds, std::vector<double>& seconds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto slowest = crew.RunRound();
    if (!slowest.ok()) return slowest.status();
    seconds.push_back(*slowest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePass(const Cell& cell, const Programs& programs, uint32_t rounds,
                         Measurement& measurement) {
  const auto crew = Crew::Start(cell, programs);
  if (!crew.ok()) return crew.status();
  std::vector<double> forgotten;
  const absl::Status warm =
      RunRounds(**crew, cell.row.warms_up_at_once ? 1 : kWarmUpRounds, forgotten);
  if (!warm.ok()) return warm;
  const auto before = (*crew)->AskUsage();
  if (!before.ok()) return before.status();
  const absl::Status measured = RunRounds(**crew, rounds, measurement.seconds);
  if (!measured.ok()) return measured;
  const auto after = (*crew)->AskUsage();
  if (!after.ok()) return after.status();
  Add(*before, *after, measurement);
  return (*crew)->End();
}

}  // namespace sluice::bench
