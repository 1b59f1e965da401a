#include "worker/torch/remote_optimizer.h"

#include <utility>

#include "common/protocol/optimizer_config.h"
#include "worker/torch/remote_training.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice {

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 const torch::optim::OptimizerOptions& options,
                                 const absl::optional<LocalSteps>& local, Overlap overlap)
    : RemoteOptimizer(job, model, ConfigOf(options), local, overlap) {}

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                 const torch::optim::OptimizerOptions& defaults,
                                 const absl::optional<LocalSteps>& local, Overlap overlap)
    : RemoteOptimizer(job, model, ConfigOf(groups, defaults, model), local, overlap) {}

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 const LambOptions& options, Overlap overlap)
    : RemoteOptimizer(job, model, OptimizerConfig{options}, absl::nullopt, overlap) {}

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 const OptimizerConfig& config,
                                 const absl::optional<LocalSteps>& local, Overlap overlap)
    : training_(
          std::make_unique<RemoteTraining>(job.context(), model, Stepping{config, local}, overlap)),
      first_step_(training_->step()) {}

RemoteOptimizer::RemoteOptimizer(const Job& job, torch::nn::Module& model,
                                 torch::optim::Optimizer& optimizer, Overlap overlap)
    : training_(std::make_unique<RemoteTraining>(job.context(), model,
                                                 Stepping{{}, absl::nullopt, &optimizer}, overlap)),
      first_step_(training_->step()) {}

RemoteOptimizer::~RemoteOptimizer() = default;

void RemoteOptimizer::zero_grad() { training_->ZeroGradients(); }

void RemoteOptimizer::attach(const std::string& type, const std::string& data) {
  training_->Attach(type, data);
}

std::vector<torch::optim::OptimizerParamGroup>& RemoteOptimizer::param_groups() {
  return training_->ProgramOptimizer().param_groups();
}

void RemoteOptimizer::clip_grad_norm(double max_norm) { training_->ClipNorm(max_norm); }

RemoteOptimizer::operator torch::optim::Optimizer&() { return training_->ProgramOptimizer(); }

RoundReport RemoteOptimizer::step(uint32_t samples, absl::optional<float> loss) {
  return training_->Step(samples, loss);
}

RoundReport RemoteOptimizer::reduce(uint32_t samples, absl::optional<float> loss) {
  return training_->Reduce(samples, loss);
}

PendingStep RemoteOptimizer::step_async(uint32_t samples, absl::optional<float> loss) {
  return training_->StepAsync(samples, loss);
}

void RemoteOptimizer::leave() { training_->Leave(); }

void RemoteOptimizer::await_end_of_training() { training_->AwaitEndOfTraining(); }

void RemoteOptimizer::fail(const std::string& why) { training_->Fail(why); }

void RemoteOptimizer::abandon() { training_->Abandon(); }

void RemoteOptimizer::report(const Results& results) { training_->Report(results); }

uint32_t RemoteOptimizer::index() const { return training_->welcome().index; }

uint32_t RemoteOptimizer::workers() const { return training_->welcome().workers; }

uint64_t RemoteOptimizer::pushes_before() const { return training_->welcome().pushes_before; }

const std::vector<std::vector<uint64_t>>& RemoteOptimizer::earlier_launches() const {
  return training_->welcome().earlier_launches;
}

RoundReport PendingStep::wait() {
  training_->Await(number_);
  return report_.get();
}

}  // namespace sluice
