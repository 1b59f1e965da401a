#include "server/web/page/operator_page.h"

#include <glog/logging.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

using Members = nlohmann::json;

constexpr size_t kShownLines = 200;  // of the log

HttpResponse JsonAnswer(int status, const Members& json) {
  return HttpText(status, json.dump(-1, ' ', false, Members::error_handler_t::replace),
                  "application/json");
}

HttpResponse Told(std::string text) { return JsonAnswer(200, {{"text", std::move(text)}}); }

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

HttpResponse Refused(const absl::Status& why) {
  return JsonAnswer(HttpStatusOf(why.code()), {{"text", std::string(why.message())}});
}

// A member of the request's object; null if there is none.
Members MemberOf(const HttpRequest& request, const char* name) {
  const Members body = Members::parse(request.body, nullptr, /*allow_exceptions=*/false);
  return body.is_object() && body.contains(name) ? body[name] : Members();
}

HttpResponse TellKey(const HttpRequest& request) {
  return JsonAnswer(200, {{"key", request.change_key}, {"needs_token", request.lacks_only_token}});
}

HttpResponse DrainJob(OperatorCommands& commands, const HttpRequest&) {
  return Told(absl::StrCat("The job ends at step ", commands.Drain().value(), "."));
}

HttpResponse EvictWorker(OperatorCommands& commands, const HttpRequest& request) {
  const Members worker = MemberOf(request, "worker");
  if (!worker.is_string()) {
    return Refused(absl::InvalidArgumentError(
        "member worker is absent, expected the name of a worker as a string"));
  }
  const auto name = worker.get<std::string>();
  const absl::Status evicted = commands.EvictWorker(name);
  if (!evicted.ok()) return Refused(evicted);
  return Told(absl::StrCat("Worker ", name, " is evicted."));
}

HttpResponse SetLearningRate(OperatorCommands& commands, const HttpRequest& request) {
  absl::optional<double> rate;
  const Members given = MemberOf(request, "learning_rate");
  if (given.is_number()) rate = given.get<double>();
  const auto step = commands.SetLearningRate(rate);
  if (!step.ok()) return Refused(step.status());
  return Told(absl::StrCat("The learning rate is ", *rate, " from step ", step->value(), " on."));
}

HttpResponse OutcomeOf(const absl::StatusOr<SavedCheckpoint>& saved) {
  if (!saved.ok()) return Refused(saved.status());
  return Told(absl::StrCat("A checkpoint of step ", saved->step.value(), " is saved as ",
                           saved->path, "."));
}

}  // namespace

std::vector<HttpRoute> OperatorPage::Routes() {
  HttpRoute key{"GET", "/api/operator", TellKey};
  key.tells_key = true;
  return {std::move(key),
          Route("/api/drain", DrainJob),
          Route("/api/evict", EvictWorker),
          Route("/api/learning-rate", SetLearningRate),
          Route("/api/checkpoint", [this](OperatorCommands& commands,
                                          const HttpRequest&) { return SaveCheckpoint(commands); }),
          {"POST", "/api/record", [this](const HttpRequest&) { return Record(); }},
          {"GET", "/api/checkpoint",
           [this](const HttpRequest& request) { return OutcomeOfSave(request); }}};
}

HttpRoute OperatorPage::Route(const std::string& path, Command command) {
  return {"POST", path, [this, path, command = std::move(command)](const HttpRequest& request) {
            const absl::MutexLock lock(&mu_);
            if (commands_.has_value()) {
              LOG(INFO) << "an operator of the live page has called " << path;
              return command(*commands_, request);
            }
            return Refused(absl::UnavailableError("the server is starting; try again"));
          }};
}

void OperatorPage::Attach(Shard& shard, DurableDirectory* durable) {
  const absl::MutexLock lock(&mu_);
  commands_.emplace(shard, durable);
}

void OperatorPage::Detach() {
  const absl::MutexLock lock(&mu_);
  commands_.reset();
}

HttpResponse OperatorPage::Record() const {
  Members lines = Members::array();
  for (const LoggedLine& line : log_->After(0, kShownLines)) {
    lines.push_back({{"time", absl::ToDoubleSeconds(line.time - absl::UnixEpoch())},
                     {"severity", line.severity},
                     {"text", line.text}});
  }
  return JsonAnswer(200, {{"configuration", configuration_}, {"log", std::move(lines)}});
}

// The listener's thread must not wait until it is saved.
HttpResponse OperatorPage::SaveCheckpoint(OperatorCommands& commands) {
  uint64_t number = 0;
  {
    const absl::MutexLock lock(&saves_mu_);
    number = ++saves_;
  }
  commands.SaveCheckpoint([this, number](const absl::StatusOr<SavedCheckpoint>& saved) {
    const absl::MutexLock lock(&saves_mu_);
    outcomes_[number] = OutcomeOf(saved);
    if (outcomes_.size() > kOutcomes) outcomes_.erase(outcomes_.begin());
  });
  return JsonAnswer(202, {{"save", number}, {"text", "A checkpoint is being saved."}});
}

HttpResponse OperatorPage::OutcomeOfSave(const HttpRequest& request) const {
  uint64_t number = 0;
  const auto asked = request.query.find("save");
  const bool is_number = asked != request.query.end() && absl::SimpleAtoi(asked->second, &number);
  const absl::MutexLock lock(&saves_mu_);
  const auto found = outcomes_.find(number);
  if (found != outcomes_.end()) return found->second;
  const bool known = is_number && number > 0 && number <= saves_ && saves_ - number < kOutcomes;
  if (known) return JsonAnswer(202, {{"text", "A checkpoint is being saved."}});
  return Refused(absl::NotFoundError("?save= must be the number of a recent POST"));
}

}  // namespace sluice
