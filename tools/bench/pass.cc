#include "tools/bench/pass.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench/round_process.h"

namespace sluice::bench {
namespace {

// All processes of a cell.
struct Crew {
  std::unique_ptr<RoundProcess> server;
  std::vector<std::unique_ptr<RoundProcess>> workers;
};

struct CrewUsage {
  Usage server;
  Usage workers;  // CPU of all together, memory of the one that needed most
};

absl::StatusOr<Crew> StartCrew(const Cell& cell) {
  Crew crew;
  auto server = RoundProcess::Start({PartKind::kServer, cell, 0, ""});
  if (!server.ok()) return server.status();
  crew.server = *std::move(server);
  const auto address = crew.server->AwaitReady();
  if (!address.ok()) return address.status();
  for (uint32_t i = 0; i < cell.workers; ++i) {
    auto worker = RoundProcess::Start({PartKind::kWorker, cell, i, *address});
    if (!worker.ok()) return worker.status();
    crew.workers.push_back(*std::move(worker));
  }
  for (const auto& worker : crew.workers) {
    const auto ready = worker->AwaitReady();
    if (!ready.ok()) return ready.status();
  }
  return crew;
}

// The seconds of the slowest worker.
absl::StatusOr<double> RunRound(Crew& crew) {
  for (const auto& worker : crew.workers) {
    const absl::Status begun = worker->BeginRound();
    if (!begun.ok()) return begun;
  }
  double slowest = 0;
  for (const auto& worker : crew.workers) {
    const auto seconds = worker->EndRound();
    if (!seconds.ok()) return seconds.status();
    slowest = std::max(slowest, *seconds);
  }
  return slowest;
}

absl::StatusOr<CrewUsage> AskUsage(Crew& crew) {
  CrewUsage usage;
  const auto server = crew.server->AskUsage();
  if (!server.ok()) return server.status();
  usage.server = *server;
  for (const auto& worker : crew.workers) {
    const auto one = worker->AskUsage();
    if (!one.ok()) return one.status();
    usage.workers.cpu_seconds += one->cpu_seconds;
    usage.workers.peak_bytes = std::max(usage.workers.peak_bytes, one->peak_bytes);
  }
  return usage;
}

// The server last: it serves until its workers have left.
absl::Status EndCrew(Crew& crew) {
  for (const auto& worker : crew.workers) {
    const absl::Status ended = worker->End();
    if (!ended.ok()) return ended;
  }
  return crew.server->End();
}

void Add(const CrewUsage& before, const CrewUsage& after, Measurement& measurement) {
  measurement.server_cpu_seconds += after.server.cpu_seconds - before.server.cpu_seconds;
  measurement.workers_cpu_seconds += after.workers.cpu_seconds - before.workers.cpu_seconds;
  measurement.server_peak_bytes = std::max(measurement.server_peak_bytes, after.server.peak_bytes);
  measurement.worker_peak_bytes = std::max(measurement.worker_peak_bytes, after.workers.peak_bytes);
}

absl::Status RunRounds(Crew& crew, uint32_t rounds, std::vector<double>& seconds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto slowest = RunRound(crew);
    if (!slowest.ok()) return slowest.status();
    seconds.push_back(*slowest);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePass(const Cell& cell, uint32_t rounds, Measurement& measurement) {
  auto crew = StartCrew(cell);
  if (!crew.ok()) return crew.status();
  std::vector<double> forgotten;
  const absl::Status warm = RunRounds(*crew, kWarmUpRounds, forgotten);
  if (!warm.ok()) return warm;
  const auto before = AskUsage(*crew);
  if (!before.ok()) return before.status();
  const absl::Status measured = RunRounds(*crew, rounds, measurement.seconds);
  if (!measured.ok()) return measured;
  const auto after = AskUsage(*crew);
  if (!after.ok()) return after.status();
  Add(*before, *after, measurement);
  return EndCrew(*crew);
}

}  // namespace sluice::bench
