#include "server/web/page/page_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/observe/readings.h"
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

std::string NameOf(Activity activity) { return std::string(1, static_cast<char>(activity)); }

// `awaited`: in words.
Json StepInProgress(const v1::ServerState& state) {
  const v1::StepState& step = state.current();
  return {{"accumulated", step.accumulated()},
          {"required", step.required()},
          {"waiting", step.has_waiting() ? Json(Seconds(step.waiting())) : Json()},
          {"awaited", AwaitedWords(state)}};
}

// `grave`: nothing gets better of itself. A model that nobody has joined has lost no worker, so the
// verdict is then that of a model with a name.
Json VerdictOf(const v1::ServerState& state) {
  const v1::Verdict& verdict = state.verdict();
  const v1::Verdict::Kind kind = verdict.kind();
  const bool none_is_here = state.has_since_initialized() && state.worker_counts().connected() == 0;
  const bool grave = kind == v1::Verdict::DIVERGED || kind == v1::Verdict::CANNOT_SAVE ||
                     kind == v1::Verdict::SERVER_AWAY ||
                     (kind == v1::Verdict::WORKERS_LOST && none_is_here);
  return {{"kind", VerdictName(kind)}, {"text", verdict.text()}, {"grave", grave}};
}

Json Pushes(const v1::PushCounters& pushes) {
  Json counts = {{"received", pushes.received()}, {"in_progress", pushes.in_progress()}};
  for (const auto& [disposition, count] : Dispositions(pushes)) counts[disposition] = count;
  return counts;
}

Json Staleness(const v1::ServerState& state) {
  Json bound = nullptr;
  const v1::Consistency& rules = state.consistency();
  if (rules.mode() == v1::SYNC || rules.mode() == v1::BACKUP) bound = 0;
  if (rules.mode() == v1::BOUNDED && rules.has_max_staleness()) bound = rules.max_staleness();
  return {{"counts", StalenessCounts(state.staleness())},
          {"mean", state.staleness().mean()},
          {"max", state.staleness().max()},
          {"bound", bound}};
}

Json Warnings(const v1::ServerState& state) {
  Json list = Json::array();
  for (const v1::TrainingWarning& warning : state.warnings()) {
    list.push_back({{"since", warning.since()},
                    {"text", warning.text()},
                    {"over", warning.has_over() ? Json(warning.over()) : Json()}});
  }
  return list;
}

// As in the verdict; null before the first step.
Json StepsPerSecond(const v1::ServerState& state) {
  const double usual = Seconds(state.mean_step_time());
  return usual > 0 ? Json(1 / usual) : Json();
}

// The latest that was reported while the job trains.
Json Measured(const v1::ServerState& state) {
  if (!state.has_measurement()) return nullptr;
  return {{"step", state.measurement().step()}, {"results", MeasuredResults(state)}};
}

Json InFlight(const v1::InFlight& in_flight) {
  return {
      {"bytes", in_flight.bytes()}, {"limit", in_flight.limit()}, {"waiting", in_flight.waiting()}};
}

// Bytes as float32 and on the wire, of each encoding that was used.
Json BytesByEncoding(const v1::ServerState& state) {
  Json received = Json::object();
  Json sent = Json::object();
  const auto put = [](const v1::EncodedBytes& used, Json& of) {
    of[used.encoding()] = {{"tensor", used.tensor_bytes()}, {"wire", used.wire_bytes()}};
  };
  for (const v1::EncodedBytes& used : state.received_by_encoding()) put(used, received);
  for (const v1::EncodedBytes& used : state.sent_by_encoding()) put(used, sent);
  return {{"received", received}, {"sent", sent}};
}

// How many workers use each encoding.
Json Encodings(const std::vector<v1::Worker>& workers) {
  std::map<std::string, int> push;
  std::map<std::string, int> pull;
  for (const v1::Worker& worker : workers) {
    if (!IsAlive(worker)) continue;
    ++push[worker.push_encoding().empty() ? "float32" : worker.push_encoding()];
    ++pull[worker.pull_encoding().empty() ? "float32" : worker.pull_encoding()];
    if (push.size() + pull.size() > 20) break;
  }
  return {{"push", push}, {"pull", pull}};
}

// Those that matter most come first.
std::vector<SeenWorker> MostImportant(std::vector<SeenWorker> workers) {
  const auto before = [](const SeenWorker& a, const SeenWorker& b) {
    if (a.awaited != b.awaited) return a.awaited;
    if (a.worker->lag() != b.worker->lag()) return a.worker->lag() > b.worker->lag();
    if (a.joined != b.joined) return a.joined > b.joined;
    return a.worker->worker() < b.worker->worker();
  };
  const size_t count = std::min(workers.size(), LivePage::kMostWorkers);
  std::partial_sort(workers.begin(), workers.begin() + static_cast<ptrdiff_t>(count), workers.end(),
                    before);
  workers.resize(count);
  return workers;
}

Json Table(const std::vector<SeenWorker>& workers, const History& history) {
  Json rows = Json::array();
  for (const SeenWorker& seen : MostImportant(workers)) {
    const v1::Worker& worker = *seen.worker;
    // Negative: it has not pushed.
    const double since_push = worker.has_since_last_push() ? Seconds(worker.since_last_push()) : -1;
    const auto& lanes = history.lanes();
    const auto lane = std::find(lanes.begin(), lanes.end(), worker.worker());
    rows.push_back({{"name", worker.worker()},
                    {"host", worker.host()},
                    {"activity", NameOf(seen.activity)},
                    {"awaited", seen.awaited},
                    {"lag", worker.lag()},
                    {"accepted", worker.accepted()},
                    {"stale", worker.stale()},
                    {"loss", Short(worker.loss())},
                    {"since_push", since_push},
                    {"lane", lane == lanes.end() ? -1 : lane - lanes.begin()}});
  }
  return rows;
}

// How many workers do what, and the range of their losses.
Json Summary(const std::vector<SeenWorker>& workers) {
  std::map<std::string, int> activities;
  std::vector<float> losses;
  for (const SeenWorker& seen : workers) {
    ++activities[NameOf(seen.activity)];
    const float loss = seen.worker->loss();
    if (std::isfinite(loss) && loss != 0) losses.push_back(loss);
  }
  std::sort(losses.begin(), losses.end());
  Json summary = {{"workers", workers.size()}, {"activities", activities}};
  if (losses.empty()) return summary;
  const float median = (losses[(losses.size() - 1) / 2] + losses[losses.size() / 2]) / 2;
  summary["losses"] = {Short(losses.front()), Short(median), Short(losses.back())};
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
  const v1::ServerState& state = input.state;
  const HistorySample newest = history.Newest();
  Json json = {{"job", state.job_id()},
               {"incarnation", state.incarnation()},
               {"phase", PhaseName(state.phase())},
               {"verdict", VerdictOf(state)},
               {"step", state.step()},
               {"total_steps", state.schedule().total_steps()},
               {"steps_per_second", StepsPerSecond(state)},
               {"samples", state.samples()},
               {"mode", RulesWords(state.consistency())},
               {"uptime", Seconds(state.uptime())},
               {"learning_rate", state.learning_rate()},
               {"base_learning_rate", state.base_learning_rate()},
               {"scheduled", !IsConstant(state.schedule()) || !state.changed_options().empty()},
               {"tensors", state.tensors()},
               {"elements", state.elements()},
               {"workers", state.workers()},
               {"expected_workers", state.expected_workers()},
               {"observers", state.observers()},
               {"waiting_pulls", state.waiting_pulls()},
               {"current", StepInProgress(state)},
               {"pushes", Pushes(state.pushes())},
               {"staleness", Staleness(state)},
               {"warnings", Warnings(state)},
               {"servers", ServersJson(input)},
               {"row_tables", TablesJson(input)},
               {"encodings", Encodings(input.workers)},
               {"results", input.results},
               {"measured", Measured(state)},
               {"lost_steps", state.lost_steps()},
               {"memory_limit", options.memory_limit},
               {"going_down", input.going_down},
               {"in_flight", InFlight(state.in_flight())},
               {"bytes_by_encoding", BytesByEncoding(state)},
               {"journal", options.journals},
               {"saves", !options.history_file.empty()}};
  json["checkpoint"] =
      state.has_last_checkpoint() ? Json(state.last_checkpoint().step()) : Json(nullptr);
  json["loss"] = state.has_loss() ? Json(state.loss()) : Json(nullptr);
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
