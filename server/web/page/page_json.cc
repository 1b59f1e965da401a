#include "server/web/page/page_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "server/policy/mode_options.h"
#include "server/web/page/servers_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

// The text of a number with the digits that a float has, as JSON; null for NaN.
Json Short(float value) {
  if (!std::isfinite(value)) return nullptr;
  const double scale = value == 0 ? 1 : std::pow(10, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(double{value} * scale) / scale;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const char* NameOfPhase(Phase phase) {
  switch (phase) {
    case Phase::kTraining:
      return "training";
    case Phase::kFinished:
      return "finished";
    case Phase::kDraining:
      return "draining";
    case Phase::kWaitingForWorkers:
      break;
  }
  return "waiting for workers";
}

std::string NameOf(Activity activity) { return std::string(1, static_cast<char>(activity)); }

Json StepInProgress(const ShardStatus& state) {
  const StepState& step = state.current;
  Json awaited = Json::array();
  for (const AwaitedWorker& worker : step.awaited) {
    awaited.push_back({{"worker", worker.worker},
                       {"since_last_seen", absl::ToDoubleSeconds(worker.since_last_seen)},
                       {"lag", worker.lag},
                       {"bytes_arrived", worker.bytes_arrived}});
  }
  Json waiting = nullptr;
  if (step.since.has_value()) waiting = absl::ToDoubleSeconds(state.now - *step.since);
  return {{"accumulated", step.accumulated}, {"required", step.required}, {"missing", step.missing},
          {"absent", step.absent},           {"waiting", waiting},        {"awaited", awaited}};
}

Json Pushes(const PushCounters& counters) {
  return {{"received", counters.received},   {"accepted", counters.accepted},
          {"stale", counters.stale},         {"skipped", counters.skipped},
          {"duplicate", counters.duplicate}, {"rejected", counters.rejected},
          {"aborted", counters.aborted},     {"in_progress", counters.in_progress}};
}

Json Staleness(const ShardStatus& state) {
  Json bound = nullptr;
  const ConsistencyMode mode = state.consistency.mode;
  if (mode == ConsistencyMode::kSync || mode == ConsistencyMode::kBackup) bound = 0;
  if (mode == ConsistencyMode::kBounded && state.consistency.max_staleness.has_value()) {
    bound = *state.consistency.max_staleness;
  }
  return {{"counts", state.staleness.counts()},
          {"mean", state.staleness.mean()},
          {"max", state.staleness.max()},
          {"bound", bound}};
}

Json Warnings(const std::vector<TrainingWarning>& warnings) {
  Json list = Json::array();
  for (const TrainingWarning& warning : warnings) {
    Json one = {{"since", warning.since.value()}, {"text", warning.text}};
    one["over"] = warning.over.has_value() ? Json(warning.over->value()) : Json(nullptr);
    list.push_back(one);
  }
  return list;
}

// The latest that was reported while the job trains.
Json Measured(const MeasurementStatus& measured) {
  if (measured.count == 0) return nullptr;
  return {{"step", measured.latest.step.value()}, {"results", measured.latest.results}};
}

Json InFlight(const InFlightStatus& in_flight) {
  return {{"bytes", in_flight.bytes}, {"limit", in_flight.limit}, {"waiting", in_flight.waiting}};
}

// Bytes as float32 and on the wire, of each encoding that was used.
Json OfTransforms(const BytesByTransform& bytes) {
  Json used = Json::object();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].wire == 0) continue;
    used[kTransformNames[i]] = {{"tensor", bytes[i].tensor}, {"wire", bytes[i].wire}};
  }
  return used;
}

Json BytesByEncoding(const TrafficCounters& traffic) {
  return {{"received", OfTransforms(traffic.received_by_transform)},
          {"sent", OfTransforms(traffic.sent_by_transform)}};
}

// How many workers use each encoding.
Json Encodings(const std::vector<SessionRecord>& sessions) {
  std::map<std::string, int> push;
  std::map<std::string, int> pull;
  for (const SessionRecord& record : sessions) {
    if (record.role != SessionRole::kWorker || !record.alive()) continue;
    ++push[record.push_encoding.empty() ? "float32" : record.push_encoding];
    ++pull[record.pull_encoding.empty() ? "float32" : record.pull_encoding];
    if (push.size() + pull.size() > 20) break;
  }
  return {{"push", push}, {"pull", pull}};
}

// Those that matter most come first.
std::vector<SeenWorker> MostImportant(std::vector<SeenWorker> workers) {
  const auto before = [](const SeenWorker& a, const SeenWorker& b) {
    if (a.awaited != b.awaited) return a.awaited;
    if (a.lag != b.lag) return a.lag > b.lag;
    if (a.joined != b.joined) return a.joined > b.joined;
    return a.name < b.name;
  };
  const size_t count = std::min(workers.size(), LivePage::kMostWorkers);
  std::partial_sort(workers.begin(), workers.begin() + static_cast<ptrdiff_t>(count), workers.end(),
                    before);
  workers.resize(count);
  return workers;
}

Json Table(const std::vector<SeenWorker>& workers, const History& history) {
  Json rows = Json::array();
  for (const SeenWorker& worker : MostImportant(workers)) {
    const auto& lanes = history.lanes();
    const auto lane = std::find(lanes.begin(), lanes.end(), worker.name);
    rows.push_back({{"name", worker.name},
                    {"activity", NameOf(worker.activity)},
                    {"awaited", worker.awaited},
                    {"lag", worker.lag},
                    {"accepted", worker.accepted},
                    {"stale", worker.stale},
                    {"loss", Short(worker.loss)},
                    {"since_push", worker.seconds_since_push},
                    {"lane", lane == lanes.end() ? -1 : lane - lanes.begin()}});
  }
  return rows;
}

// How many workers do what, and the range of their losses.
Json Summary(const std::vector<SeenWorker>& workers) {
  std::map<std::string, int> activities;
  std::vector<float> losses;
  for (const SeenWorker& worker : workers) {
    ++activities[NameOf(worker.activity)];
    if (std::isfinite(worker.loss) && worker.loss != 0) losses.push_back(worker.loss);
  }
  std::sort(losses.begin(), losses.end());
  Json summary = {{"workers", workers.size()}, {"activities", activities}};
  if (losses.empty()) return summary;
  summary["losses"] = {Short(losses.front()), Short(losses[losses.size() / 2]),
                       Short(losses.back())};
  return summary;
}

Json RowOf(const HistorySample& sample) {
  Json row;
  for (size_t i = 0; i < kColumns.size(); ++i) row[kColumns[i].name] = sample.values[i];
  Json losses = Json::array();
  std::string activities;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    losses.push_back(Short(sample.losses[lane]));
    activities.push_back(static_cast<char>(sample.activities[lane]));
  }
  row["losses"] = losses;
  row["activities"] = activities;
  return row;
}

Json Events(const History& history, size_t most) {
  Json events = Json::array();
  const auto& all = history.events();
  for (size_t i = all.size() - std::min(most, all.size()); i < all.size(); ++i) {
    events.push_back({{"time", all[i].time},
                      {"step", all[i].step},
                      {"kind", all[i].kind},
                      {"text", all[i].text}});
  }
  return events;
}

}  // namespace

std::string StateJson(const JobMoment& input, const LivePageOptions& options,
                      const std::vector<SeenWorker>& workers, const History& history) {
  constexpr size_t kNewestEvents = 20;
  const ShardStatus& state = input.state;
  const HistorySample newest = history.Newest();
  Json json = {{"job", state.job_id},
               {"incarnation", state.incarnation.value()},
               {"phase", NameOfPhase(state.phase)},
               {"diverged", state.diverged},
               {"step", state.step.value()},
               {"mode", DescribeMode(state.consistency)},
               {"uptime", absl::ToDoubleSeconds(state.uptime)},
               {"learning_rate", state.learning_rate},
               {"base_learning_rate", state.base_learning_rate},
               {"scheduled", !state.schedule.is_constant()},
               {"tensors", state.tensors},
               {"elements", state.elements},
               {"workers", state.workers},
               {"expected_workers", state.expected_workers},
               {"observers", state.observers},
               {"waiting_pulls", state.waiting_pulls},
               {"current", StepInProgress(state)},
               {"pushes", Pushes(state.counters)},
               {"staleness", Staleness(state)},
               {"warnings", Warnings(state.warnings)},
               {"servers", ServersJson(state)},
               {"row_tables", TablesJson(state)},
               {"encodings", Encodings(input.sessions)},
               {"results", input.results},
               {"measured", Measured(state.measured)},
               {"lost_steps", state.lost_steps},
               {"memory_limit", options.memory_limit},
               {"going_down", input.going_down},
               {"in_flight", InFlight(state.in_flight)},
               {"bytes_by_encoding", BytesByEncoding(state.traffic)},
               {"journal", options.journals},
               {"saves", !options.history_file.empty()}};
  json["checkpoint"] =
      input.checkpoint.has_value() ? Json(input.checkpoint->value()) : Json(nullptr);
  json["lanes"] = history.lanes();
  json["table"] = Table(workers, history);
  json["summary"] = Summary(workers);
  json["row"] = RowOf(newest);
  json["events"] = Events(history, kNewestEvents);
  return Dump(json);
}

std::string HistoryJson(const History& history) {
  const std::vector<HistorySample> rows = history.Rows();
  Json columns;
  for (size_t i = 0; i < kColumns.size(); ++i) {
    Json values = Json::array();
    for (const HistorySample& row : rows) values.push_back(row.values[i]);
    columns[kColumns[i].name] = std::move(values);
  }
  Json lanes = Json::array();
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Json losses = Json::array();
    std::string activities;
    for (const HistorySample& row : rows) {
      losses.push_back(Short(row.losses[lane]));
      activities.push_back(static_cast<char>(row.activities[lane]));
    }
    lanes.push_back(
        {{"name", history.lanes()[lane]}, {"losses", losses}, {"activities", activities}});
  }
  return Dump(
      {{"columns", columns}, {"lanes", lanes}, {"events", Events(history, History::kMostEvents)}});
}

}  // namespace sluice
