#include "worker/torch/remote_optimizer.h"

#include <string>
#include <utility>

namespace sluice {
namespace {

void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw RemoteError(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

SgdOptions FromTorch(const torch::optim::SGDOptions& from) {
  SgdOptions options;
  options.learning_rate = from.lr();
  options.momentum = from.momentum();
  options.dampening = from.dampening();
  options.weight_decay = from.weight_decay();
  options.nesterov = from.nesterov();
  ThrowIfError(options.Validate());
  return options;
}

// Opens a session for `model`, whose values it sends or replaces.
std::unique_ptr<ParameterClient> JoinJob(const Job& job, SessionRole role,
                                         const SgdOptions& options, FlatModel& model) {
  auto client = std::make_unique<ParameterClient>(ValueOrThrow(job.Connect()));
  JoinRequest request = job.Identity(role);
  request.layout = model.layout();
  request.optimizer = options;
  ThrowIfError(client->Join(request, model.values()));
  model.ScatterValues();
  return client;
}

}  // namespace

RemoteError::RemoteError(absl::Status status)
    : std::runtime_error(std::string(status.message())), status_(std::move(status)) {}

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 const torch::optim::SGDOptions& options)
    : job_(job), model_(model), options_(FromTorch(options)) {
  client_ = JoinJob(job_, SessionRole::kWorker, options_, model_);
}

RemoteOptimizer::~RemoteOptimizer() {
  // The server will notice anyway.
  if (!left_) client_->Leave({}).IgnoreError();
  if (observer_ != nullptr) observer_->Leave({}).IgnoreError();
}

RoundReport RemoteOptimizer::step(uint32_t samples, absl::optional<float> loss) {
  const absl::Span<const float> gradient = model_.GatherGradients();
  const RoundReport report =
      ValueOrThrow(client_->Exchange(gradient, samples, loss, model_.values()));
  model_.ScatterValues();
  return report;
}

void RemoteOptimizer::leave() {
  left_ = true;
  ThrowIfError(client_->Leave({}));
}

void RemoteOptimizer::await_end_of_training() {
  // Observes before it leaves: a server without anybody would go down.
  observer_ = JoinJob(job_, SessionRole::kObserver, options_, model_);
  leave();
  ThrowIfError(observer_->AwaitEnd(model_.values()));
  model_.ScatterValues();
}

void RemoteOptimizer::report(const Results& results) {
  if (observer_ == nullptr) {
    throw RemoteError(absl::FailedPreconditionError(
        "report() comes after await_end_of_training(), and only once"));
  }
  const std::unique_ptr<ParameterClient> observer = std::move(observer_);
  ThrowIfError(observer->Leave(results));
}

}  // namespace sluice
