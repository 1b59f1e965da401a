#include "worker/torch/remote_training.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/torch/remote_error.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice {
namespace {

constexpr char kTrainingRow[] = "training";  // of the trace

// The optimizer of the server: averaging if the worker takes local steps, and none if the program's
// steps.
OptimizerConfig ConfigFor(const Stepping& stepping) {
  if (stepping.program != nullptr) return {MeanGradientOptions()};
  const OptimizerConfig& config = stepping.config;
  const absl::optional<LocalSteps>& local = stepping.local;
  ThrowIfError(Validate(config));
  if (!local.has_value()) return config;
  if (std::holds_alternative<LambOptions>(config.options)) {
    throw std::invalid_argument(
        "local steps are taken with an optimizer of torch::optim, which has no LAMB; use another, "
        "or no local steps");
  }
  const AveragingOptions averaging = AveragingOf(*local);
  ThrowIfError(Validate(averaging));
  if (!(local->elasticity > 0 && local->elasticity <= 1)) {
    throw std::invalid_argument(
        absl::StrCat("elasticity is ", local->elasticity, ", expected more than 0, at most 1"));
  }
  return {averaging};
}

FlatModel::Carries CarriedBy(const Stepping& stepping) {
  if (stepping.program != nullptr) return FlatModel::Carries::kGradients;
  return stepping.local.has_value() ? FlatModel::Carries::kValues
                                    : FlatModel::Carries::kGradientsAndValues;
}

// With the optimizers of the model's tables that have their own.
OptimizerConfig WithTables(OptimizerConfig config, const FlatModel& model) {
  for (const NamedEmbedding& embedding : model.embeddings()) {
    const absl::optional<OptimizerOptions>& own = embedding.module->options().optimizer;
    if (own.has_value()) config.tables.push_back({embedding.name, *own});
  }
  return config;
}

// Opens a session for `model`, whose values it sends, and writes to its vector. `handing` is for a
// worker that steps itself.
std::unique_ptr<ParameterClient> JoinJob(const WorkerContext& context, SessionRole role,
                                         const OptimizerConfig& config, FlatModel& model,
                                         const RunningMeans& means,
                                         ParameterClient::Model handing = {}) {
  auto client = std::make_unique<ParameterClient>(ValueOrThrow(context.Connect()),
                                                  context.push_encoding(), context.pull_encoding(),
                                                  RealClock(), context.if_options_differ());
  if (role == SessionRole::kWorker) {
    client->CacheRows(context.row_cache());
    client->KeepRunningMeans(means);
    client->KeepConstants(model.constants());
  }
  JoinRequest request = context.Identity(role);
  request.layout = model.layout();
  request.optimizer = config;
  request.memory = model.gradient_memory();
  if (model.has_one_buffer()) {
    const auto restore = [&model](absl::Span<float> /*values*/) {
      model.GatherValues();
      return absl::OkStatus();
    };
    client->RestoreBy(restore, std::move(handing));
  }
  ThrowIfError(client->Join(request, model.values()));
  if (role == SessionRole::kWorker) model.ScatterConstants();
  return client;
}

RoundReport PushParameters(LocalTraining& local, ParameterClient& client,
                           absl::optional<float> loss) {
  return ValueOrThrow(local.Push(client, loss));
}

// `last` if no local steps are left over.
RoundReport PushTheRest(LocalTraining& local, ParameterClient& client, const RoundReport& last) {
  return local.has_steps() ? PushParameters(local, client, absl::nullopt) : last;
}

// Traces the time between two steps, in which the caller runs data, forward and backward.
void TraceCompute(Trace* trace, absl::Time since, Step step) {
  if (trace != nullptr) trace->Add(kTrainingRow, "compute", since, trace->Now(), step);
}

}  // namespace

RemoteTraining::RemoteTraining(WorkerContext context, torch::nn::Module& model,
                               const Stepping& stepping, Overlap overlap)
    : context_(std::move(context)),
      module_(model),
      model_(model, CarriedBy(stepping)),
      norms_(model, model_.layout()),
      config_(WithTables(ConfigFor(stepping), model_)) {
  const absl::optional<LocalSteps>& local = stepping.local;
  if (local.has_value() && !model_.embeddings().empty()) {
    throw std::invalid_argument(
        "local steps average parameters, and a RemoteEmbedding has none here; train without local "
        "steps");
  }
  if (local.has_value() && overlap == Overlap::kBackward) {
    throw std::invalid_argument(
        "local steps push no gradients, so overlap with backward (Overlap::kBackward, --overlap) "
        "has none to send early; use local steps or overlap, not both");
  }
  if (local.has_value() && context_.push_encoding().choice.sparse()) {
    throw std::invalid_argument(
        "local steps push parameters, most of which top-k and random-k would set to 0; choose "
        "another push encoding");
  }
  ThrowIfError(CheckFits(config_, model_.layout()));
  if (stepping.program != nullptr) {
    steps_ = std::make_unique<WorkerSteps>(*stepping.program, model, model_);
  }
  part_ = ValueOrThrow(context_.TakePart());
  client_ = JoinJob(context_, SessionRole::kWorker, config_, model_,
                    local.has_value() ? RunningMeans() : norms_.elements(),
                    steps_ == nullptr ? ParameterClient::Model() : steps_->Handing());
  if (steps_ == nullptr || !steps_->has_taken()) model_.ScatterValues();
  if (steps_ != nullptr) {
    steps_->TakeMean(client_->held());  // of the first step that it takes part in, perhaps
    steps_->Step();
    model_.ZeroGradients();
  }
  EndStep(RoundReport{client_->step()});
  if (overlap == Overlap::kBackward) {
    background_ = std::make_unique<SerialExecutor>();
    watch_ = std::make_unique<GradientWatch>(model_, [this](uint64_t offset, uint64_t count) {
      const SharedFloats part = model_.shared_gradients().Part(offset, count);
      // Takes the fingerprint here, not on the sending thread, which may run only after the
      // gradient has changed.
      sent_early_.Note(offset, part.values);
      background_->Run([this, offset, part] { client_->SendEarly(offset, part); });
    });
  }
  if (local.has_value()) {
    local_ = std::make_unique<LocalTraining>(*local, stepping.config, model, model_);
  }
  rows_ = std::make_shared<ClientRows>(*client_, [this] { Await(); });
  for (uint32_t table = 0; table < model_.embeddings().size(); ++table) {
    model_.embeddings()[table].module->Bind(table, rows_);
  }
}

RemoteTraining::~RemoteTraining() {
  background_ = nullptr;  // waits for its tasks
  rows_->Close(
      "rows are pulled after the RemoteOptimizer of their model was destroyed; keep it for as long "
      "as the model is used");
  for (const NamedEmbedding& embedding : model_.embeddings()) embedding.module->Unbind(*rows_);
  client_->GiveUpEarly();
  if (unwinding_.IsUnderWay()) Fail("an exception has ended its training");
  // Errors do not matter: the server also notices that the connection ends.
  if (!left_) client_->Leave({}, ParameterClient::IfLost::kGivesUp).IgnoreError();
  if (observer_ != nullptr) observer_->Leave({}, ParameterClient::IfLost::kGivesUp).IgnoreError();
}

void RemoteTraining::ZeroGradients() {
  Await();
  GiveUpEarly();
  if (steps_ != nullptr) steps_->Forget();
  model_.ZeroGradients();
  for (const NamedEmbedding& embedding : model_.embeddings()) embedding.module->ForgetGradients();
}

void RemoteTraining::Attach(const std::string& type, const std::string& data) {
  Await();
  ThrowIfError(client_->Attach({type, data}));
}

// Drops a gradient of which a part has left.
void RemoteTraining::GiveUpEarly() {
  if (watch_ == nullptr) return;
  if (watch_->any_left()) {
    background_->Drain();
    client_->GiveUpEarly();
    sent_early_.Clear();
  }
  watch_->Reset();
}

void RemoteTraining::BeginStep() {
  Await();
  if (left_) {
    ThrowIfError(absl::FailedPreconditionError(
        "step() was called after leave(), when this worker no longer takes part"));
  }
  model_.CheckTensors();
  model_.WarnOfChanges();
  if (watch_ != nullptr) watch_->Check();
  if (program_ != nullptr) changed_ = ChangedIn(*program_, config_);
  if (steps_ != nullptr) steps_->CheckGroups();
  TraceCompute(context_.trace(), computing_since_, client_->step());
}

// Only a step that succeeded gets here: after an error gradients stay, and may be pushed again.
void RemoteTraining::EndStep(const RoundReport& report) {
  for (const NamedEmbedding& embedding : model_.embeddings()) embedding.module->ForgetGradients();
  if (client_->constants_pulled() != constants_pulled_) model_.ScatterConstants();
  constants_pulled_ = client_->constants_pulled();
  norms_.NotePull();
  last_report_ = report;
  welcome_ = client_->welcome();
  if (context_.trace() != nullptr) computing_since_ = context_.trace()->Now();
}

RoundReport RemoteTraining::Step(uint32_t samples, absl::optional<float> loss) {
  if (steps_ != nullptr) {
    if (samples != 1 && steps_->has_mean()) {
      throw std::invalid_argument(
          "step() got samples, and reduce() has pushed the gradients; give them to reduce()");
    }
    Reduce(samples, loss);
    steps_->Step();
    return last_report_;
  }
  BeginStep();
  if (local_ != nullptr) {
    EndStep(TakeLocalStep(samples, loss));
  } else {
    const SharedFloats gradient = GatherGradients();
    if (background_ != nullptr) background_->Drain();
    EndStep(PushGradients(gradient, samples, loss));
  }
  return last_report_;
}

RoundReport RemoteTraining::Reduce(uint32_t samples, absl::optional<float> loss) {
  if (steps_ == nullptr) {
    throw std::logic_error(
        "reduce() is for a RemoteOptimizer that was given an optimizer of torch::optim, with which "
        "the worker steps; with others the server steps, and has the mean of the gradients");
  }
  BeginStep();
  if (steps_->has_mean()) return last_report_;
  const SharedFloats gradient = GatherGradients();
  if (background_ != nullptr) background_->Drain();
  EndStep(PushGradients(gradient, samples, loss));
  return last_report_;
}

PendingStep RemoteTraining::StepAsync(uint32_t samples, absl::optional<float> loss) {
  std::promise<RoundReport> done;
  if (local_ != nullptr || steps_ != nullptr) {
    done.set_value(Step(samples, loss));
    return {*this, ++async_steps_, done.get_future().share()};
  }
  BeginStep();
  const SharedFloats gradient = GatherGradients();
  if (background_ == nullptr) background_ = std::make_unique<SerialExecutor>();
  const auto work = std::make_shared<std::packaged_task<RoundReport()>>(
      [this, gradient, samples, loss] { return PushGradients(gradient, samples, loss); });
  pending_ = work->get_future().share();
  background_->Run([work] { (*work)(); });
  return {*this, ++async_steps_, pending_};
}

void RemoteTraining::Await(uint64_t number) {
  if (number == async_steps_) Await();
}

void RemoteTraining::Await() {
  if (steps_ != nullptr) steps_->CheckWhole();
  if (!pending_.valid()) return;
  const std::shared_future<RoundReport> pending = std::move(pending_);
  pending_ = {};
  background_->Drain();
  EndStep(pending.get());
}

RoundReport RemoteTraining::PushGradients(const SharedFloats& gradient, uint32_t samples,
                                          absl::optional<float> loss) {
  CheckSentEarly(gradient);
  if (program_ != nullptr) ThrowIfError(client_->SetOptions(changed_));
  if (!client_->welcome().consistency.CountsFreshOnly()) {
    client_->SetRunningMeans(norms_.Decays(), model_.gradients());
  }
  const RoundReport report =
      ValueOrThrow(client_->PushPull(gradient, samples, loss, model_.values()));
  if (steps_ != nullptr) {
    steps_->TakeMean(client_->held());
  } else {
    model_.ScatterValues();
  }
  return report;
}

// Throws if a part of the gradient has changed since it left.
void RemoteTraining::CheckSentEarly(const SharedFloats& gradient) {
  const absl::optional<uint64_t> changed = sent_early_.FirstChanged(gradient.values);
  sent_early_.Clear();
  if (!changed.has_value()) return;
  client_->GiveUpEarly();
  watch_->ThrowChanged(*changed);
}

SharedFloats RemoteTraining::GatherGradients() {
  const TraceSpan span(context_.trace(), kTrainingRow, "encode", client_->step());
  if (watch_ != nullptr) watch_->Reset();
  client_->SetRows(GradientsOf(model_.embeddings()));
  return model_.GatherGradients();
}

RoundReport RemoteTraining::TakeLocalStep(uint32_t samples, absl::optional<float> loss) {
  // An error has left a mixture: its gradient is of no use, and the client pulls instead of
  // pushing.
  if (!client_->held().complete()) return PushParameters(*local_, *client_, loss);
  const double factor = client_->welcome().schedule.FactorAt(client_->step());
  if (!local_->Step(samples, factor)) return last_report_;
  return PushParameters(*local_, *client_, loss);
}

torch::optim::Optimizer& RemoteTraining::ProgramOptimizer() {
  if (steps_ != nullptr) return steps_->optimizer();
  if (local_ != nullptr) return local_->optimizer();
  if (program_ == nullptr) {
    program_ = MakeTorchOptimizer(config_, module_, !model_.embeddings().empty());
    program_->state().clear();  // that of Adagrad is made at once
  }
  return *program_;
}

void RemoteTraining::ClipNorm(double max_norm) {
  Await();
  if (local_ != nullptr) {
    torch::nn::utils::clip_grad_norm_(module_.parameters(), max_norm);
    return;
  }
  if (steps_ != nullptr) return steps_->ClipNorm(max_norm);
  if (background_ != nullptr) background_->Drain();
  ThrowIfError(client_->SetClipNorm(max_norm));
}

void RemoteTraining::Leave() {
  Await();
  GiveUpEarly();
  if (local_ != nullptr) last_report_ = PushTheRest(*local_, *client_, last_report_);
  Abandon();
  ThrowIfError(client_->Leave({}));
}

void RemoteTraining::Fail(const std::string& why) {
  if (left_) return;
  Abandon();
  if (background_ != nullptr) background_->Drain();
  client_->GiveUpEarly();
  client_->Leave({{}, why.empty() ? "it gives no reason" : why}, ParameterClient::IfLost::kGivesUp)
      .IgnoreError();
}

void RemoteTraining::AwaitEndOfTraining() {
  Await();
  if (steps_ != nullptr) steps_->Forget();
  model_.CheckTensors();
  // Pushes the remaining local steps first, because JoinJob() overwrites the model's vector.
  if (local_ != nullptr) last_report_ = PushTheRest(*local_, *client_, last_report_);
  // Observes before it leaves, because a server without sessions would end.
  observer_ = JoinJob(context_, SessionRole::kObserver, config_, model_, {});
  if (steps_ == nullptr) model_.ScatterValues();
  Leave();
  ThrowIfError(observer_->AwaitEnd(model_.values()));
  rows_->Use(*observer_);
  if (steps_ == nullptr) {
    model_.ScatterValues();
  } else {
    model_.ZeroGradients();  // the server has the last mean only
  }
}

void RemoteTraining::Report(const Results& results) {
  if (observer_ == nullptr) {
    throw RemoteError(absl::FailedPreconditionError(
        "report() may be called once, after await_end_of_training()"));
  }
  rows_->Close("rows are pulled after report(), with which this process leaves; pull them before");
  const std::unique_ptr<ParameterClient> observer = std::move(observer_);
  ThrowIfError(observer->Leave({results}));
}

}  // namespace sluice
