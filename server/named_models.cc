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
#include "server/observe/job_moment.h"
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

ModelParts PartsOf(HostedModel& model) {
  ModelParts parts = model.parts();
  parts.has_name = true;
  return parts;
}

bool HasEnded(const HostedModel& model) { return model.deserted() || model.drained(); }

absl::Status SaveLastOf(const std::string& name, HostedModel& model) {
  if (model.durable() == nullptr || model.shard().store().stripe().latest() == nullptr)
    return absl::OkStatus();
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
    auto opened = Open(name);
    if (!opened.ok()) return opened.status();
    // A worker may have been refused after it had begun the model.
    if ((*opened)->hosted->shard().store().stripe().latest() == nullptr) continue;
    absl::MutexLock lock(&mu_);
    models_.emplace(name, *std::move(opened));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelParts> NamedModels::Find(const std::string& name, bool begins) {
  const absl::Status sound = CheckModelName(name);
  if (!sound.ok()) return sound;
  if (const Model* const known = Known(name); known != nullptr) return PartsOf(*known->hosted);
  if (!begins) {
    return MakeError(Reason::kNotFound, absl::StrCat("this job has no model \"", name, "\""));
  }
  absl::MutexLock one_at_a_time(&begin_mu_);
  // Another worker may have begun it meanwhile.
  if (const Model* const known = Known(name); known != nullptr) return PartsOf(*known->hosted);
  {
    absl::MutexLock lock(&mu_);
    const absl::Status may = CheckMayBegin(name);
    if (!may.ok()) return may;
  }
  auto opened = Open(name);
  if (!opened.ok()) return opened.status();
  const ModelParts parts = PartsOf(*(*opened)->hosted);
  absl::MutexLock lock(&mu_);
  const absl::Status may = CheckMayBegin(name);
  if (!may.ok()) return may;
  models_.emplace(name, *std::move(opened));
  LOG(INFO) << "a worker has begun the model " << name;
  return parts;
}

absl::Status NamedModels::CheckMayBegin(const std::string& name) const {
  if (drains_) return DrainingError();
  if (models_.size() < kMost) return absl::OkStatus();
  return MakeError(Reason::kTooManyModels,
                   absl::StrCat("the model \"", name, "\" would be one more than the ", kMost,
                                " that a job may have; start another job for it"));
}

absl::StatusOr<std::unique_ptr<NamedModels::Model>> NamedModels::Open(
    const std::string& name) const {
  ServerOptions options = options_;
  options.shard.job_id = job_id_;
  options.shard.session_base = SessionId(RandomNonce().value() >> 1);
  if (!options.durable.directory.empty()) options.durable.directory += "/" + name;
  auto opened = HostedModel::Open(std::move(options), trace_);
  if (!opened.ok()) return OfModel(name, opened.status());
  const absl::Status restored = (*opened)->Recover();
  if (!restored.ok()) return OfModel(name, restored);
  return std::make_unique<Model>(
      Model{name, *std::move(opened), StepWaitLog(options_.log_step_wait), {}});
}

// Stays true, so that the sessions of a model are looked at no more.
void NamedModels::NoteUse(Model& model) {
  if (!model.used) model.used = AnyHasJoined(model.hosted->shard().Sessions());
}

NamedModels::Model* NamedModels::Known(const std::string& name) const {
  absl::MutexLock lock(&mu_);
  const auto found = models_.find(name);
  return found == models_.end() ? nullptr : found->second.get();
}

std::vector<NamedModels::Model*> NamedModels::All() const {
  std::vector<Model*> all;
  absl::MutexLock lock(&mu_);
  for (const auto& model : models_) all.push_back(model.second.get());
  return all;
}

void NamedModels::Tick() {
  for (Model* const model : All()) {
    model->hosted->shard().Tick();
    NoteUse(*model);
    const auto waits = model->waits.Look(model->hosted->shard().Describe());
    if (waits.has_value()) LOG(WARNING) << "model " << model->name << ": " << *waits;
    if (model->story.IsDue(RealClock().Now())) Tell(*model);
  }
}

void NamedModels::TellEnd() {
  for (Model* const model : All()) Tell(*model);
}

void NamedModels::Tell(Model& model) {
  Shard& shard = model.hosted->shard();
  const JobMoment moment = MomentOf(shard.Describe(), shard, model.hosted->durable());
  for (const std::string& line : model.story.Tell(moment)) {
    LOG(INFO) << "model " << model.name << ": " << line;
  }
}

bool NamedModels::AnyHasTrained() const {
  const std::vector<Model*> all = All();
  return std::any_of(all.begin(), all.end(),
                     [](const Model* model) { return model->used || HasEnded(*model->hosted); });
}

bool NamedModels::AreOver() const {
  if (held_.use_count() > 1) return false;
  const bool all_count = options_.shard.launched == Launched::kAgain;
  const std::vector<Model*> all = All();
  if (all_count && !all.empty() && RealClock().Now() < begun_ + options_.shard.lease) return false;
  return std::all_of(all.begin(), all.end(), [all_count](const Model* model) {
    return HasEnded(*model->hosted) || !(all_count || model->used);
  });
}

void NamedModels::Drain() {
  {
    absl::MutexLock lock(&mu_);
    drains_ = true;
  }
  for (Model* const model : All()) {
    NoteUse(*model);
    model->finished = model->hosted->shard().Describe().phase == Phase::kFinished;
    if (!model->finished) model->hosted->shard().Drain();
  }
}

void NamedModels::EndAnswers(const absl::Status& why) {
  for (const Model* const model : All()) model->hosted->EndAnswers(why);
}

absl::Status NamedModels::SaveLast() {
  absl::Status saved;
  for (const Model* const model : All()) {
    // A push that was cancelled may complete a step.
    model->hosted->shard().store().executors().Drain();
    saved.Update(OfModel(model->name, SaveLastOf(model->name, *model->hosted)));
  }
  return saved;
}

bool NamedModels::CountersBalance() const {
  const std::vector<Model*> all = All();
  return std::all_of(all.begin(), all.end(), [](const Model* model) {
    return sluice::CountersBalance(model->hosted->shard());
  });
}

int NamedModels::Outcome() const {
  int outcome = kEndedWell;
  for (const Model* const model : All()) {
    const Shard& shard = model->hosted->shard();
    const int code = model->used ? OutcomeOf(shard, model->finished) : kEndedWell;
    if (code == kEndedWell) continue;
    if (outcome == kEndedWell) outcome = code;
    LOG(ERROR) << "model " << model->name << ": " << WhyItEnds(code, shard.Sessions());
  }
  return outcome;
}

std::vector<NamedShard> NamedModels::Shards() const {
  std::vector<NamedShard> shards;
  for (Model* const model : All()) {
    shards.push_back({model->name, &model->hosted->shard(), model->hosted->durable()});
  }
  return shards;
}

std::string NamedModels::ClosingLines() const {
  std::string lines;
  for (const Model* const model : All()) {
    if (!model->used) continue;
    Shard& shard = model->hosted->shard();
    lines += ClosingLine(model->name, ToProto(shard.Describe()), shard.results(),
                         shard.Digest(options_.grace));
  }
  return lines;
}

}  // namespace sluice
