#include "server/metrics/shard_families.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process_memory.h"
#include "common/base/version.h"
#include "server/metrics/families.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

double AsDouble(uint64_t number) { return static_cast<double>(number); }

// The label of a phase.
std::string PhaseLabel(v1::ServerPhase phase) {
  return phase == v1::WAITING_FOR_WORKERS ? "waiting" : PhaseName(phase);
}

void AddJob(const v1::ServerState& state, Families& families) {
  families.Gauge("sluice_job_info", "The job, its mode and its optimizer. The value is 1.", 1,
                 {{"job_id", state.job_id()},
                  {"mode", ModeName(state.consistency())},
                  {"optimizer", OptimizerName(state.optimizer())}});
  families.Gauge("sluice_incarnation", "Number of the server's incarnation.",
                 AsDouble(state.incarnation()));
  families.BeginGauge("sluice_phase", "1 for the phase that the job is in, 0 for the others.");
  for (const auto phase : {v1::WAITING_FOR_WORKERS, v1::TRAINING, v1::FINISHED, v1::DRAINING}) {
    families.Add({{"phase", PhaseLabel(phase)}}, state.phase() == phase ? 1 : 0);
  }
  families.Gauge("sluice_step", "The step: the version of the parameters.", AsDouble(state.step()));
  families.Gauge("sluice_lost_steps", "Steps of earlier incarnations that were not restored.",
                 AsDouble(state.lost_steps()));
  families.Gauge("sluice_parameters", "Elements of the model.", AsDouble(state.elements()));
  families.Gauge("sluice_learning_rate", "Learning rate of the current step.",
                 state.learning_rate());
}

void AddVerdict(const v1::ServerState& state, Families& families) {
  families.BeginGauge("sluice_verdict", "1 for what is said of the job, 0 for all else.");
  for (int number = v1::Verdict::DIVERGED; number <= v1::Verdict::Kind_MAX; ++number) {
    const auto kind = static_cast<v1::Verdict::Kind>(number);
    families.Add({{"verdict", VerdictName(kind)}}, state.verdict().kind() == kind ? 1 : 0);
  }
}

void AddWarnings(const v1::ServerState& state, Families& families) {
  families.BeginGauge("sluice_training_warning", "1 while this warning about training lasts.");
  for (int number = v1::NOT_FINITE; number <= v1::WarningKind_MAX; ++number) {
    const auto kind = static_cast<v1::WarningKind>(number);
    const bool lasts = std::any_of(state.warnings().begin(), state.warnings().end(),
                                   [kind](const v1::TrainingWarning& warning) {
                                     return warning.kind() == kind && !warning.has_over();
                                   });
    families.Add({{"kind", WarningName(kind)}}, lasts ? 1 : 0);
  }
}

// The names are fixed: what a program calls its other results would make a series of each.
void AddMeasured(const v1::ServerState& state, Families& families) {
  const Results results = MeasuredResults(state);
  const auto add = [&](const char* name, const char* help, const char* result) {
    families.BeginGauge(name, help);
    const auto found = results.find(result);
    if (found != results.end()) families.Add({}, found->second);
  };
  add("sluice_measured_accuracy", "Share of test samples classified right, as last reported.",
      "test accuracy");
  add("sluice_measured_loss", "Mean loss of the test samples, as last reported.", "test loss");
  families.BeginGauge("sluice_measured_step", "The step whose parameters were last evaluated.");
  if (state.has_measurement()) families.Add({}, AsDouble(state.measurement().step()));
}

prometheus::ClientMetric::Histogram StalenessOf(const v1::Staleness& staleness) {
  prometheus::ClientMetric::Histogram values;
  values.sample_count = staleness.gradients();
  values.sample_sum = AsDouble(staleness.sum());
  const std::vector<uint64_t> counts = StalenessCounts(staleness);
  uint64_t gradients = 0;
  for (size_t bound = 0; bound + 1 < counts.size(); ++bound) {
    gradients += counts[bound];
    values.bucket.push_back({gradients, AsDouble(bound)});
  }
  values.bucket.push_back({values.sample_count, std::numeric_limits<double>::infinity()});
  return values;
}

void AddPushes(const v1::ServerState& state, Families& families) {
  families.BeginCounter("sluice_pushes_total", "Pushes that are over, by what became of them.");
  for (const auto& [disposition, count] : Dispositions(state.pushes())) {
    families.Add({{"disposition", disposition}}, AsDouble(count));
  }
  families.Gauge("sluice_pushes_in_progress", "Pushes that arrive or are queued.",
                 AsDouble(state.pushes().in_progress()));
  families.Histogram("sluice_gradient_staleness_steps",
                     "Staleness of the gradients that counted, in steps.",
                     StalenessOf(state.staleness()));
}

void AddWorkers(const v1::ServerState& state, Families& families) {
  const v1::WorkerCounts& workers = state.worker_counts();
  families.BeginGauge("sluice_workers",
                      "Workers that take part, that are lost with a running lease, or evicted.");
  families.Add({{"state", "connected"}}, workers.connected());
  families.Add({{"state", "lost"}}, workers.lost());
  families.Add({{"state", "evicted"}}, workers.evicted());
  families.Gauge("sluice_expected_workers", "Workers that the first step waits for.",
                 state.expected_workers());
  families.Gauge("sluice_observers", "Observers that are present.", state.observers());
}

void AddWaits(const v1::ServerState& state, Families& families) {
  const v1::StepState& step = state.current();
  const double waited = Seconds(step.waiting());
  families.Gauge(
      "sluice_last_step_age_seconds",
      "Time since the latest step, or before the first, since the initial parameters.",
      Seconds(state.has_since_last_step() ? state.since_last_step() : state.since_initialized()));
  families.Gauge("sluice_current_wait_seconds", "How long the current step has waited for workers.",
                 waited);
  families.Gauge("sluice_longest_wait_seconds", "The longest wait of a step for workers.",
                 Seconds(state.longest_wait()));
  families.Gauge("sluice_awaited_workers", "Workers that the current step waits for.",
                 step.missing());
  families.BeginGauge("sluice_awaited_worker_silence_seconds",
                      "Time since a worker that the step waits for was last heard.");
  if (waited >= absl::ToDoubleSeconds(kNamedAfter)) {
    for (const v1::AwaitedWorker& worker : step.awaited()) {
      families.Add({{"worker", worker.worker()}}, Seconds(worker.since_last_seen()));
    }
  }
  families.Gauge("sluice_waiting_pulls", "Pulls that wait for a step.", state.waiting_pulls());
}

// Encodings that nobody has used are left out.
void AddEncoded(const v1::ServerState& state, uint64_t (v1::EncodedBytes::*bytes)() const,
                Families& families) {
  const auto add = [&](const char* direction, const auto& moved) {
    for (const v1::EncodedBytes& one : moved) {
      families.Add({ServerLabel(), {"direction", direction}, {"encoding", one.encoding()}},
                   AsDouble((one.*bytes)()));
    }
  };
  add("received", state.received_by_encoding());
  add("sent", state.sent_by_encoding());
}

void AddTraffic(const v1::ServerState& state, Families& families) {
  families.BeginCounter("sluice_tensor_bytes_total",
                        "Bytes of tensors that were moved, as float32.");
  families.Add({{"direction", "received"}}, AsDouble(state.bytes_received()));
  families.Add({{"direction", "sent"}}, AsDouble(state.bytes_sent()));
  families.BeginCounter(
      "sluice_wire_bytes_total",
      "Bytes of the messages that moved tensors, without those in shared memory.");
  families.Add({ServerLabel(), {"direction", "received"}}, AsDouble(state.wire_bytes_received()));
  families.Add({ServerLabel(), {"direction", "sent"}}, AsDouble(state.wire_bytes_sent()));
  families.BeginCounter("sluice_encoding_tensor_bytes_total",
                        "Bytes of tensors that messages moved in each encoding, as float32.");
  AddEncoded(state, &v1::EncodedBytes::tensor_bytes, families);
  families.BeginCounter("sluice_encoding_wire_bytes_total",
                        "Bytes of the messages that moved tensors in each encoding.");
  AddEncoded(state, &v1::EncodedBytes::wire_bytes, families);
}

// What the leader knows of each server. A job has at most 256.
void AddServers(const JobMoment& moment, Families& families) {
  const auto add = [&](const auto& value) {
    for (const v1::Server& server : moment.servers) {
      families.Add({{"server", absl::StrCat(server.index())}}, value(server));
    }
  };
  families.BeginGauge("sluice_server_connected", "1 while the server is connected to the first.");
  add([](const v1::Server& server) { return server.connected() ? 1.0 : 0.0; });
  families.BeginGauge("sluice_server_away_seconds",
                      "Time since the server's connection to the first one broke; else 0.");
  add([](const v1::Server& server) { return server.connected() ? 0.0 : Seconds(server.since()); });
  families.BeginGauge("sluice_server_awaited_seconds",
                      "How long the current step has waited for the server; else 0.");
  add([&](const v1::Server& server) { return SecondsAwaited(moment.state, server).value_or(0); });
  families.BeginGauge("sluice_server_stripe_bytes", "Size of the server's part of the model.");
  add([](const v1::Server& server) { return AsDouble(server.bytes()); });
  families.BeginCounter("sluice_server_wire_bytes_total",
                        "Bytes of the messages that moved tensors between workers and the server.");
  for (const v1::Server& server : moment.servers) {
    const std::string name = absl::StrCat(server.index());
    families.Add({{"server", name}, {"direction", "received"}},
                 AsDouble(server.wire_bytes_received()));
    families.Add({{"server", name}, {"direction", "sent"}}, AsDouble(server.wire_bytes_sent()));
  }
}

// Of the first kMostTables.
void AddTables(const std::vector<v1::TableState>& tables, Families& families) {
  constexpr size_t kMostTables = 100;
  const auto add = [&](uint64_t (v1::TableState::*value)() const) {
    for (size_t i = 0; i < std::min(tables.size(), kMostTables); ++i) {
      families.Add({{"table", tables[i].table().name()}}, AsDouble((tables[i].*value)()));
    }
  };
  families.BeginGauge("sluice_table_rows", "Rows that the table has on all servers.");
  add(&v1::TableState::rows);
  families.BeginGauge("sluice_table_rows_on_disk",
                      "Of them, rows for which there is no memory (--table-dir).");
  add(&v1::TableState::rows_on_disk);
  families.BeginGauge("sluice_table_waiting_ids", "Ids that wait for their admission.");
  add(&v1::TableState::waiting);
  families.BeginGauge("sluice_table_bytes", "Memory of the table, with slots and index.");
  add(&v1::TableState::bytes);
  families.BeginCounter("sluice_table_dropped_gradients_total",
                        "Gradients of rows that waited for their admission.");
  add(&v1::TableState::dropped);
  families.BeginCounter("sluice_table_removed_rows_total",
                        "Rows that were removed because no gradient touched them.");
  add(&v1::TableState::removed);
  families.BeginCounter("sluice_table_reads_total", "Ids that pulls have read.");
  add(&v1::TableState::reads);
  families.BeginCounter("sluice_table_hits_total", "Of these, ids that were rows.");
  add(&v1::TableState::hits);
}

void AddLoad(const v1::ServerState& state, Families& families) {
  const v1::InFlight& in_flight = state.in_flight();
  families.Gauge("sluice_in_flight_bytes", "Memory of gradients that arrive or wait.",
                 AsDouble(in_flight.bytes()));
  families.Gauge("sluice_in_flight_limit_bytes", "The most memory that they may take.",
                 AsDouble(in_flight.limit()));
  families.Gauge("sluice_waiting_pushes", "Pushes that wait for that memory.",
                 AsDouble(in_flight.waiting()));
  families.BeginGauge("sluice_executor_tasks", "Tasks that wait or run on the server's threads.");
  const std::map<std::string, uint32_t> sorted(state.tasks().begin(), state.tasks().end());
  for (const auto& [executor, tasks] : sorted) {
    families.Add({ServerLabel(), {"executor", executor}}, tasks);
  }
}

// A server that saves no checkpoint while it trains has none of any age.
void AddDisk(const v1::ServerState& state, Families& families) {
  families.Gauge("sluice_journal_stopped",
                 "1 while the journal cannot be written, so that pushes are refused.",
                 state.journal_stopped() ? 1 : 0, {ServerLabel()});
  families.BeginGauge("sluice_checkpoint_age_seconds",
                      "Time since a checkpoint was saved, or the incarnation began.");
  if (state.checkpoint_every() == 0) return;
  families.Add(
      {ServerLabel()},
      Seconds(state.has_last_checkpoint() ? state.last_checkpoint().since() : state.uptime()));
}

}  // namespace

std::vector<prometheus::MetricFamily> ShardFamilies(const JobMoment& moment) {
  Families families;
  const v1::ServerState& state = moment.state;
  AddJob(state, families);
  AddVerdict(state, families);
  AddWarnings(state, families);
  AddMeasured(state, families);
  AddPushes(state, families);
  AddWorkers(state, families);
  AddWaits(state, families);
  AddTraffic(state, families);
  AddServers(moment, families);
  AddTables(moment.tables, families);
  AddLoad(state, families);
  AddDisk(state, families);
  families.Gauge("sluice_uptime_seconds", "Time since the incarnation began.",
                 Seconds(state.uptime()), {ServerLabel()});
  return families.Take();
}

std::vector<prometheus::MetricFamily> ProcessFamilies() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const absl::Duration cpu =
      absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  Families families;
  families.Gauge("sluice_build_info", "The version of Sluice. The value is 1.", 1,
                 {ServerLabel(), {"version", kVersion}});
  families.Gauge("process_resident_memory_bytes", "Memory of the process.",
                 AsDouble(ReadProcessMemory().resident));
  families.BeginCounter("process_cpu_seconds_total", "CPU time of the process.");
  families.Add({}, absl::ToDoubleSeconds(cpu));
  return families.Take();
}

}  // namespace sluice
