#include "server/events/json_log.h"

#include <glog/logging.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

using nlohmann::ordered_json;

using ChangeKind = JobChange::Kind;

const char* EventOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kStarted:
      return "started";
    case ChangeKind::kPolicy:
      return "policy";
    case ChangeKind::kRate:
      return "learning_rate";
    case ChangeKind::kCheckpoint:
      return "checkpoint";
    case ChangeKind::kWarning:
      return "warning";
    case ChangeKind::kWarningOver:
      return "warning_over";
    case ChangeKind::kMeasured:
      return "measured";
    case ChangeKind::kStep:
      return "step";
    case ChangeKind::kDraining:
      return "draining";
    case ChangeKind::kFinished:
      return "finished";
    case ChangeKind::kJoined:
      return "joined";
    case ChangeKind::kLost:
      return "lost";
    case ChangeKind::kLeft:
      return "left";
    case ChangeKind::kEvicted:
      return "evicted";
  }
  return "";
}

// What each line begins with.
ordered_json Begin(const JobMoment& moment, absl::string_view event) {
  ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", moment.time, absl::UTCTimeZone());
  line["event"] = std::string(event);
  line["job"] = moment.state.job_id();
  line["incarnation"] = moment.state.incarnation();
  line["step"] = moment.state.step();
  return line;
}

// What a worker calls itself may be no UTF-8.
std::string Dump(const ordered_json& line) {
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

void AddPolicy(const v1::ServerState& state, ordered_json& line) {
  line["mode"] = ModeName(state.consistency());
  line["rules"] = RulesWords(state.consistency());
}

void AddStart(const v1::ServerState& state, ordered_json& line) {
  line["version"] = state.version();
  AddPolicy(state, line);
  line["expected_workers"] = state.expected_workers();
  line["lost_steps"] = state.lost_steps();
}

// Of a worker, or of all workers together.
template <typename Pushes>
void AddCounters(const Pushes& pushes, ordered_json& line) {
  line["accepted"] = pushes.accepted();
  line["stale"] = pushes.stale();
  line["skipped"] = pushes.skipped();
}

void AddWorker(const v1::Worker& worker, ordered_json& line) {
  line["worker"] = worker.worker();
  line["rank"] = worker.index();
  line["host"] = worker.host();
  AddCounters(worker, line);
}

void AddWarning(const v1::TrainingWarning& warning, bool over, ordered_json& line) {
  line["kind"] = WarningName(warning.kind());
  line["since"] = warning.since();
  if (over) line["over"] = warning.over();
  line["text"] = warning.text();
}

void AddMeasured(const v1::ServerState& state, ordered_json& line) {
  line["of_step"] = state.measurement().step();
  line["results"] = MeasuredResults(state);
}

void AddStep(const v1::ServerState& state, const JobNews& news, ordered_json& line) {
  if (news.loss.has_value()) line["loss"] = *news.loss;
  if (state.learning_rate() > 0) line["learning_rate"] = state.learning_rate();
  if (news.staleness.has_value()) line["staleness"] = *news.staleness;
  if (news.rates.has_value()) {
    line["steps_per_second"] = news.rates->steps;
    line["pushes_per_second"] = news.rates->pushes;
    line["received_bytes_per_second"] = news.rates->bytes_received;
    line["sent_bytes_per_second"] = news.rates->bytes_sent;
  }
  line["workers"] = state.workers();
  AddCounters(state.pushes(), line);
}

std::string ChangeLine(const JobMoment& moment, const JobNews& news, const JobChange& change) {
  const v1::ServerState& state = moment.state;
  ordered_json line = Begin(moment, EventOf(change.kind));
  if (change.kind == ChangeKind::kStarted) AddStart(state, line);
  if (change.kind == ChangeKind::kPolicy) AddPolicy(state, line);
  if (change.kind == ChangeKind::kRate) line["learning_rate"] = state.base_learning_rate();
  if (change.kind == ChangeKind::kCheckpoint) line["saved"] = state.last_checkpoint().step();
  if (change.kind == ChangeKind::kMeasured) AddMeasured(state, line);
  if (change.kind == ChangeKind::kStep) AddStep(state, news, line);
  if (change.kind == ChangeKind::kFinished || change.kind == ChangeKind::kDraining) {
    AddCounters(state.pushes(), line);
  }
  if (change.worker != nullptr) AddWorker(*change.worker, line);
  if (change.warning != nullptr) {
    AddWarning(*change.warning, change.kind == ChangeKind::kWarningOver, line);
  }
  return Dump(line);
}

}  // namespace

std::vector<std::string> ChangeLines(const JobMoment& moment, const JobNews& news) {
  std::vector<std::string> lines;
  lines.reserve(news.changes.size());
  for (const JobChange& change : news.changes) lines.push_back(ChangeLine(moment, news, change));
  return lines;
}

std::string LostLine(const JobMoment& moment, uint64_t lines) {
  ordered_json line = Begin(moment, "lines_lost");
  line["lines"] = lines;
  return Dump(line);
}

void JsonLog::Look(const JobMoment& moment, const JobNews& news) {
  TellLost(moment);
  for (std::string& line : ChangeLines(moment, news)) file_->Add(std::move(line));
}

void JsonLog::End(const JobMoment& last) {
  file_->Flush();
  TellLost(last);
  file_->Flush();
  const uint64_t lost = file_->TakeLost();
  LOG_IF(WARNING, lost > 0) << "the last " << lost << " lines of " << file_->name() << " are lost";
}

// If the line is lost itself, the next one tells of all.
void JsonLog::TellLost(const JobMoment& moment) {
  const uint64_t lost = file_->TakeLost();
  if (lost > 0) file_->Add(LostLine(moment, lost), lost);
}

}  // namespace sluice
