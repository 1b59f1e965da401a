#include "server/metrics/shard_families.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_options.h"
#include "server/metrics/families.h"
#include "server/state/wire_bytes.h"

namespace sluice {
namespace {

constexpr std::pair<Phase, const char*> kPhases[] = {{Phase::kWaitingForWorkers, "waiting"},
                                                     {Phase::kTraining, "training"},
                                                     {Phase::kFinished, "finished"},
                                                     {Phase::kDraining, "draining"}};

double AsDouble(uint64_t number) { return static_cast<double>(number); }

double SecondsSince(const absl::optional<absl::Time>& since, absl::Time now) {
  return since.has_value() ? absl::ToDoubleSeconds(now - *since) : 0;
}

void AddJob(const ShardStatus& status, Families& families) {
  families.Gauge(
      "sluice_job_info", "The job, its mode and its optimizer. The value is 1.", 1,
      {{"job_id", status.job_id},
       {"mode", std::string(ConsistencyModeName(status.consistency.mode))},
       {"optimizer",
        status.optimizer == nullptr ? "" : std::string(OptimizerName(status.optimizer->options))}});
  families.Gauge("sluice_incarnation", "Number of the server's incarnation.",
                 AsDouble(status.incarnation.value()));
  families.BeginGauge("sluice_phase", "1 for the phase that the job is in, 0 for the others.");
  for (const auto& phase : kPhases) {
    families.Add({{"phase", phase.second}}, status.phase == phase.first ? 1 : 0);
  }
  families.Gauge("sluice_step", "The step: the version of the parameters.",
                 AsDouble(status.step.value()));
  families.Gauge("sluice_lost_steps", "Steps of earlier incarnations that were not restored.",
                 AsDouble(status.lost_steps));
  families.Gauge("sluice_parameters", "Elements of the model.", AsDouble(status.elements));
  families.Gauge("sluice_learning_rate", "Learning rate of the current step.",
                 status.learning_rate);
}

void AddWarnings(const ShardStatus& status, Families& families) {
  families.BeginGauge("sluice_training_warning", "1 while this warning about training lasts.");
  for (const auto& [kind, name] : kWarningNames) {
    bool lasts = false;
    for (const TrainingWarning& warning : status.warnings) {
      lasts = lasts || (warning.kind == kind && !warning.over.has_value());
    }
    families.Add({{"kind", name}}, lasts ? 1 : 0);
  }
}

// The names are fixed: what a program calls its other results would make a series of each.
void AddMeasured(const MeasurementStatus& measured, Families& families) {
  const auto add = [&](const char* name, const char* help, const char* result) {
    families.BeginGauge(name, help);
    const auto found = measured.latest.results.find(result);
    if (found != measured.latest.results.end()) families.Add({}, found->second);
  };
  add("sluice_measured_accuracy", "Share of test samples classified right, as last reported.",
      "test accuracy");
  add("sluice_measured_loss", "Mean loss of the test samples, as last reported.", "test loss");
  families.BeginGauge("sluice_measured_step", "The step whose parameters were last evaluated.");
  if (measured.count > 0) families.Add({}, AsDouble(measured.latest.step.value()));
}

prometheus::ClientMetric::Histogram StalenessOf(const StalenessHistogram& staleness) {
  prometheus::ClientMetric::Histogram values;
  values.sample_count = staleness.total();
  values.sample_sum = AsDouble(staleness.sum());
  uint64_t gradients = 0;
  for (uint64_t bound = 0; bound < StalenessHistogram::kLast; ++bound) {
    gradients += staleness.counts()[bound];
    values.bucket.push_back({gradients, AsDouble(bound)});
  }
  values.bucket.push_back({staleness.total(), std::numeric_limits<double>::infinity()});
  return values;
}

void AddPushes(const ShardStatus& status, Families& families) {
  const PushCounters& counters = status.counters;
  families.BeginCounter("sluice_pushes_total", "Pushes that are over, by what became of them.");
  for (const auto& [disposition, count] :
       {std::make_pair("accepted", counters.accepted), std::make_pair("stale", counters.stale),
        std::make_pair("skipped", counters.skipped),
        std::make_pair("duplicate", counters.duplicate),
        std::make_pair("rejected", counters.rejected),
        std::make_pair("aborted", counters.aborted)}) {
    families.Add({{"disposition", disposition}}, AsDouble(count));
  }
  families.Gauge("sluice_pushes_in_progress", "Pushes that arrive or are queued.",
                 AsDouble(counters.in_progress));
  families.Histogram("sluice_gradient_staleness_steps",
                     "Staleness of the gradients that counted, in steps.",
                     StalenessOf(status.staleness));
}

void AddWorkers(const ShardStatus& status, Families& families) {
  const WorkerCounts& workers = status.worker_counts;
  families.BeginGauge("sluice_workers",
                      "Workers that take part, that are lost with a running lease, or evicted.");
  families.Add({{"state", "connected"}}, workers.connected);
  families.Add({{"state", "lost"}}, workers.open - workers.connected);
  families.Add({{"state", "evicted"}}, workers.evicted);
  families.Gauge("sluice_expected_workers", "Workers that the first step waits for.",
                 status.expected_workers);
  families.Gauge("sluice_observers", "Observers that are present.", status.observers);
}

void AddWaits(const ShardStatus& status, Families& families) {
  const StepState& step = status.current;
  const double waited = SecondsSince(step.since, status.now);
  families.Gauge("sluice_last_step_age_seconds",
                 "Time since the latest step, or before the first, since the initial parameters.",
                 SecondsSince(status.times.last_step.has_value() ? status.times.last_step
                                                                 : status.times.initialized,
                              status.now));
  families.Gauge("sluice_current_wait_seconds", "How long the current step has waited for workers.",
                 waited);
  families.Gauge("sluice_longest_wait_seconds", "The longest wait of a step for workers.",
                 absl::ToDoubleSeconds(status.times.longest_wait));
  families.Gauge("sluice_awaited_workers", "Workers that the current step waits for.",
                 step.missing);
  families.BeginGauge("sluice_awaited_worker_silence_seconds",
                      "Time since a worker that the step waits for was last heard.");
  if (waited >= absl::ToDoubleSeconds(kNamedAfter)) {
    for (const AwaitedWorker& worker : step.awaited) {
      families.Add({{"worker", worker.worker}}, absl::ToDoubleSeconds(worker.since_last_seen));
    }
  }
  families.Gauge("sluice_waiting_pulls", "Pulls that wait for a step.", status.waiting_pulls);
}

// Encodings that nobody has used are left out.
void AddEncoded(const char* direction, const BytesByTransform& moved, uint64_t ChunkBytes::*bytes,
                Families& families) {
  for (size_t i = 0; i < kValueTransforms; ++i) {
    if (moved[i].wire == 0) continue;
    families.Add({ServerLabel(), {"direction", direction}, {"encoding", kTransformNames[i]}},
                 AsDouble(moved[i].*bytes));
  }
}

void AddEncoded(const TrafficCounters& traffic, uint64_t ChunkBytes::*bytes, Families& families) {
  AddEncoded("received", traffic.received_by_transform, bytes, families);
  AddEncoded("sent", traffic.sent_by_transform, bytes, families);
}

void AddTraffic(const TrafficCounters& traffic, Families& families) {
  families.BeginCounter("sluice_tensor_bytes_total",
                        "Bytes of tensors that were moved, as float32.");
  families.Add({{"direction", "received"}}, AsDouble(traffic.bytes_received));
  families.Add({{"direction", "sent"}}, AsDouble(traffic.bytes_sent));
  families.BeginCounter(
      "sluice_wire_bytes_total",
      "Bytes of the messages that moved tensors, without those in shared memory.");
  families.Add({ServerLabel(), {"direction", "received"}}, AsDouble(traffic.wire_bytes_received));
  families.Add({ServerLabel(), {"direction", "sent"}}, AsDouble(traffic.wire_bytes_sent));
  families.BeginCounter("sluice_encoding_tensor_bytes_total",
                        "Bytes of tensors that messages moved in each encoding, as float32.");
  AddEncoded(traffic, &ChunkBytes::tensor, families);
  families.BeginCounter("sluice_encoding_wire_bytes_total",
                        "Bytes of the messages that moved tensors in each encoding.");
  AddEncoded(traffic, &ChunkBytes::wire, families);
}

// What the first server knows of each. A job has at most 256 servers.
void AddServers(const ShardStatus& status, Families& families) {
  const auto add = [&](const auto& value) {
    for (size_t i = 0; i < status.each_server.size(); ++i) {
      families.Add({{"server", absl::StrCat(i)}}, value(status.each_server[i]));
    }
  };
  families.BeginGauge("sluice_server_connected", "1 while the server is connected to the first.");
  add([](const ServerStatus& server) { return server.connected ? 1.0 : 0.0; });
  families.BeginGauge("sluice_server_away_seconds",
                      "Time since the server's connection to the first one broke; else 0.");
  add([](const ServerStatus& server) {
    const bool away = !server.connected && server.unchanged.has_value();
    return away ? absl::ToDoubleSeconds(*server.unchanged) : 0.0;
  });
  families.BeginGauge("sluice_server_awaited_seconds",
                      "How long the current step has waited for the server; else 0.");
  add([](const ServerStatus& server) {
    return absl::ToDoubleSeconds(server.awaited.value_or(absl::ZeroDuration()));
  });
  families.BeginGauge("sluice_server_stripe_bytes", "Size of the server's part of the model.");
  add([](const ServerStatus& server) { return AsDouble(server.elements * sizeof(float)); });
  families.BeginCounter("sluice_server_wire_bytes_total",
                        "Bytes of the messages that moved tensors between workers and the server.");
  for (size_t i = 0; i < status.each_server.size(); ++i) {
    const StripeFigures& figures = status.each_server[i].figures;
    const std::string name = absl::StrCat(i);
    families.Add({{"server", name}, {"direction", "received"}},
                 AsDouble(figures.wire_bytes_received));
    families.Add({{"server", name}, {"direction", "sent"}}, AsDouble(figures.wire_bytes_sent));
  }
}

// Of the first kMostTables.
void AddTables(const ShardStatus& status, Families& families) {
  constexpr size_t kMostTables = 100;
  const std::vector<TableStatus> totals = status.table_totals();
  const auto add = [&](uint64_t TableStatus::*value) {
    for (size_t i = 0; i < std::min(totals.size(), kMostTables); ++i) {
      families.Add({{"table", status.layout->tables()[i].name}}, AsDouble(totals[i].*value));
    }
  };
  families.BeginGauge("sluice_table_rows", "Rows that the table has on all servers.");
  add(&TableStatus::rows);
  families.BeginGauge("sluice_table_rows_on_disk",
                      "Of them, rows for which there is no memory (--table-dir).");
  add(&TableStatus::on_disk);
  families.BeginGauge("sluice_table_waiting_ids", "Ids that wait for their admission.");
  add(&TableStatus::waiting);
  families.BeginGauge("sluice_table_bytes", "Memory of the table, with slots and index.");
  add(&TableStatus::bytes);
  families.BeginCounter("sluice_table_dropped_gradients_total",
                        "Gradients of rows that waited for their admission.");
  add(&TableStatus::dropped);
  families.BeginCounter("sluice_table_removed_rows_total",
                        "Rows that were removed because no gradient touched them.");
  add(&TableStatus::removed);
  families.BeginCounter("sluice_table_reads_total", "Ids that pulls have read.");
  add(&TableStatus::reads);
  families.BeginCounter("sluice_table_hits_total", "Of these, ids that were rows.");
  add(&TableStatus::hits);
}

void AddLoad(const ServerFigures& figures, Families& families) {
  const InFlightStatus& in_flight = figures.status.in_flight;
  families.Gauge("sluice_in_flight_bytes", "Memory of gradients that arrive or wait.",
                 AsDouble(in_flight.bytes));
  families.Gauge("sluice_in_flight_limit_bytes", "The most memory that they may take.",
                 AsDouble(in_flight.limit));
  families.Gauge("sluice_waiting_pushes", "Pushes that wait for that memory.",
                 AsDouble(in_flight.waiting));
  families.BeginGauge("sluice_executor_tasks", "Tasks that wait or run on the server's threads.");
  for (const auto& [executor, tasks] : figures.executor_tasks) {
    families.Add({ServerLabel(), {"executor", executor}}, AsDouble(tasks));
  }
}

void AddDisk(const ServerFigures& figures, Families& families) {
  families.Gauge("sluice_journal_stopped",
                 "1 while the journal cannot be written, so that pushes are refused.",
                 figures.status.journal_stopped ? 1 : 0, {ServerLabel()});
  families.BeginGauge("sluice_checkpoint_age_seconds",
                      "Time since a checkpoint was saved, or the incarnation began.");
  if (figures.checkpoint_age.has_value()) {
    families.Add({ServerLabel()}, absl::ToDoubleSeconds(*figures.checkpoint_age));
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> ShardFamilies(const ServerFigures& figures) {
  Families families;
  const ShardStatus& status = figures.status;
  AddJob(status, families);
  AddWarnings(status, families);
  AddMeasured(status.measured, families);
  AddPushes(status, families);
  AddWorkers(status, families);
  AddWaits(status, families);
  AddTraffic(status.traffic, families);
  AddServers(status, families);
  AddTables(status, families);
  AddLoad(figures, families);
  AddDisk(figures, families);
  families.Gauge("sluice_uptime_seconds", "Time since the incarnation began.",
                 absl::ToDoubleSeconds(status.uptime), {ServerLabel()});
  return families.Take();
}

std::vector<prometheus::MetricFamily> ProcessFamilies(const ProcessFigures& figures) {
  Families families;
  families.Gauge("sluice_build_info", "The version of Sluice. The value is 1.", 1,
                 {ServerLabel(), {"version", kVersion}});
  families.Gauge("process_resident_memory_bytes", "Memory of the process.",
                 AsDouble(figures.resident_bytes));
  families.BeginCounter("process_cpu_seconds_total", "CPU time of the process.");
  families.Add({}, absl::ToDoubleSeconds(figures.cpu));
  return families.Take();
}

}  // namespace sluice
