#include "server/web/page/runs_page.h"

#include <glog/logging.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace sluice {
namespace {

using RunsJson = nlohmann::json;

// The digits that a chart can show; null for what is no number.
RunsJson Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return static_cast<double>(static_cast<float>(value));
}

RunsJson CurveJson(const std::vector<RunPoint>& points) {
  RunsJson curve = {
      {"time", RunsJson::array()}, {"step", RunsJson::array()}, {"loss", RunsJson::array()}};
  for (const RunPoint& point : points) {
    curve["time"].push_back(point.time);
    curve["step"].push_back(point.step);
    curve["loss"].push_back(Rounded(point.loss));
  }
  return curve;
}

RunsJson RunJson(const PastRun& run) {
  return {{"name", run.name},
          {"job", run.job_id},
          {"rules", run.facts.rules},
          {"verdict", run.facts.verdict},
          {"learning_rate", run.facts.learning_rate},
          {"loss", run.facts.loss},
          {"begun", run.begun},
          {"seen", run.seen},
          {"step", run.step},
          {"curve", CurveJson(run.points)}};
}

std::string RunsText(const std::string& directory, const std::string& error,
                     const std::vector<PastRun>& runs, absl::Time read) {
  RunsJson list = RunsJson::array();
  for (const PastRun& run : runs) list.push_back(RunJson(run));
  const RunsJson json = {{"directory", directory},
                         {"error", error},
                         {"read", absl::ToDoubleSeconds(read - absl::UnixEpoch())},
                         {"runs", std::move(list)}};
  return json.dump(-1, ' ', false, RunsJson::error_handler_t::replace);
}

}  // namespace

RunsPage::RunsPage(const std::string& directory)
    : directory_(directory),
      files_(directory),
      json_(std::make_shared<const std::string>(RunsText(directory, "", {}, RealClock().Now()))) {
  const absl::MutexLock lock(&mu_);
  ReadSoon();
}

HttpRoute RunsPage::Route() {
  return {"GET", "/api/runs", [this](const HttpRequest&) { return Answer(); }};
}

HttpResponse RunsPage::Answer() {
  const absl::MutexLock lock(&mu_);
  if (RealClock().Now() - read_ >= kBetweenReads) ReadSoon();
  return {200, "application/json", json_, ""};
}

void RunsPage::ReadSoon() {
  if (directory_.empty() || std::exchange(reading_, true)) return;
  executor_.Run([this] { Read(); });
}

void RunsPage::Read() {
  const absl::Time now = RealClock().Now();
  const auto runs = files_.Read();
  const std::string error(runs.status().message());
  if (error != error_ && !error.empty()) LOG(WARNING) << "the page shows no runs: " << error;
  error_ = error;
  auto json = std::make_shared<const std::string>(
      RunsText(directory_, error, runs.ok() ? *runs : std::vector<PastRun>(), now));
  const absl::MutexLock lock(&mu_);
  json_ = std::move(json);
  read_ = RealClock().Now();
  reading_ = false;
}

}  // namespace sluice
