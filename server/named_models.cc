#include "server/named_models.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/protocol/model_name.h"
#include "server/admission/draining.h"
#include "server/closing_table.h"
#include "server/durable/save_checkpoint.h"
#include "server/job_outcome.h"
#include "server/observe/server_state.h"

namespace sluice {
namespace {

// The options of a model that has a name, but for its directory. Metrics and the page hear of the
// model without a name only.
ServerOptions OptionsOfNamed(ServerOptions options) {
  options.shard.on_span = nullptr;
  options.shard.warnings.clear();
  if (!options.durable.directory.empty()) options.durable.directory += "/models";
  return options;
}

absl::Status OfModel(const std::string& name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("model ", name, ": ", status.message()));
}

bool HasEnded(const HostedModel& model) { return model.deserted() || model.drained(); }

absl::Status SaveLastOf(const std::string& name, HostedModel& model) {
  if (model.durable() == nullptr || model.shard().snapshot() == nullptr) return absl::OkStatus();
  const ShardStatus state = model.shard().Describe();
  if (state.end_is_complete) return absl::OkStatus();
  if (state.diverged) {
    LOG(WARNING) << "no last checkpoint of the model " << name
                 << " is saved, because training diverged";
    return absl::OkStatus();
  }
  return SaveCheckpointAndWait(model.shard(), *model.durable());
}

}  // namespace

NamedModels::NamedModels(const ServerOptions& options, Trace* trace)
    : options_(OptionsOfNamed(options)), trace_(trace) {}

bool NamedModels::MayHave(const ServerOptions& options) {
  return options.servers == 1 && options.shard.guards.on_divergence != DivergenceAction::kRestore;
}

absl::Status NamedModels::Restore(const std::string& job_id) {
  absl::MutexLock lock(&mu_);
  job_id_ = job_id;
  const std::string& directory = options_.durable.directory;
  if (directory.empty()) return absl::OkStatus();
  const auto names = options_.files->List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const bool is_model =
        CheckModelName(name).ok() && options_.files->List(absl::StrCat(directory, "/", name)).ok();
    if (!is_model) continue;  // not made here
    const absl::Status begun = Begin(name);
    if (!begun.ok()) return begun;
    // A worker may have been refused after it had begun the model.
    if (models_.at(name).hosted->shard().snapshot() == nullptr) models_.erase(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelParts> NamedModels::Find(const std::string& name, bool begins) {
  const absl::Status sound = CheckModelName(name);
  if (!sound.ok()) return sound;
  absl::MutexLock lock(&mu_);
  if (models_.count(name) == 0) {
    if (begins && drains_) return DrainingError();
    if (!begins) {
      return MakeError(Reason::kNotFound, absl::StrCat("this job has no model \"", name, "\""));
    }
    if (models_.size() >= kMost) {
      return MakeError(Reason::kTooManyModels,
                       absl::StrCat("the model \"", name, "\" would be one more than the ", kMost,
                                    " that a job may have; start another job for it"));
    }
    const absl::Status begun = Begin(name);
    if (!begun.ok()) return begun;
    LOG(INFO) << "a worker has begun the model " << name;
  }
  return models_.at(name).hosted->parts();
}

absl::Status NamedModels::Begin(const std::string& name) {
  ServerOptions options = options_;
  options.shard.job_id = job_id_;
  options.shard.session_base = SessionId(RandomNonce().value() >> 1);
  if (!options.durable.directory.empty()) options.durable.directory += "/" + name;
  auto opened = HostedModel::Open(std::move(options), trace_);
  if (!opened.ok()) return OfModel(name, opened.status());
  const absl::Status restored = (*opened)->Recover();
  if (!restored.ok()) return OfModel(name, restored);
  models_.emplace(name, Model{*std::move(opened), StepWaitLog(options_.log_step_wait)});
  return absl::OkStatus();
}

// Stays true, so that the sessions of a model are looked at no more.
void NamedModels::NoteUse(Model& model) {
  if (!model.used) model.used = AnyHasJoined(model.hosted->shard().Sessions());
}

std::vector<std::string> NamedModels::Names() {
  std::vector<std::string> names;
  absl::MutexLock lock(&mu_);
  for (const auto& model : models_) names.push_back(model.first);
  return names;
}

void NamedModels::Tick() {
  absl::MutexLock lock(&mu_);
  for (auto& [name, model] : models_) {
    model.hosted->shard().Tick();
    NoteUse(model);
    const auto waits = model.waits.Look(model.hosted->shard().Describe());
    if (waits.has_value()) LOG(WARNING) << "model " << name << ": " << *waits;
  }
}

bool NamedModels::AnyHasTrained() const {
  absl::MutexLock lock(&mu_);
  return std::any_of(models_.begin(), models_.end(), [](const auto& model) {
    return model.second.used || HasEnded(*model.second.hosted);
  });
}

bool NamedModels::AreOver() const {
  if (held_.use_count() > 1) return false;
  const bool all_count = options_.shard.launched == Launched::kAgain;
  absl::MutexLock lock(&mu_);
  if (all_count && !models_.empty() && RealClock().Now() < begun_ + options_.shard.lease) {
    return false;
  }
  return std::all_of(models_.begin(), models_.end(), [all_count](const auto& model) {
    return HasEnded(*model.second.hosted) || !(all_count || model.second.used);
  });
}

void NamedModels::Drain() {
  absl::MutexLock lock(&mu_);
  drains_ = true;
  for (auto& named : models_) {
    Model& model = named.second;
    NoteUse(model);
    model.finished = model.hosted->shard().Describe().phase == Phase::kFinished;
    if (!model.finished) model.hosted->shard().Drain();
  }
}

void NamedModels::EndAnswers(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  for (auto& model : models_) model.second.hosted->EndAnswers(why);
}

absl::Status NamedModels::SaveLast() {
  absl::Status saved;
  absl::MutexLock lock(&mu_);
  for (auto& [name, model] : models_) {
    model.hosted->shard().executors().Drain();  // a push that was cancelled may complete a step
    saved.Update(OfModel(name, SaveLastOf(name, *model.hosted)));
  }
  return saved;
}

bool NamedModels::CountersBalance() const {
  absl::MutexLock lock(&mu_);
  return std::all_of(models_.begin(), models_.end(), [](const auto& model) {
    return sluice::CountersBalance(model.second.hosted->shard());
  });
}

int NamedModels::Outcome() const {
  int outcome = 0;
  absl::MutexLock lock(&mu_);
  for (const auto& [name, model] : models_) {
    const Shard& shard = model.hosted->shard();
    const int code = model.used ? OutcomeOf(shard, model.finished) : kEndedWell;
    if (code == kEndedWell) continue;
    if (outcome == kEndedWell) outcome = code;
    LOG(ERROR) << "model " << name << ": " << WhyItEnds(code, shard.Sessions());
  }
  return outcome;
}

std::string NamedModels::ClosingLines() const {
  std::string lines;
  absl::MutexLock lock(&mu_);
  for (const auto& [name, model] : models_) {
    if (!model.used) continue;
    Shard& shard = model.hosted->shard();
    lines +=
        ClosingLine(name, ToProto(shard.Describe()), shard.results(), shard.Digest(options_.grace));
  }
  return lines;
}

}  // namespace sluice
