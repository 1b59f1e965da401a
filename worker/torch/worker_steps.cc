#include "worker/torch/worker_steps.h"

#include <glog/logging.h>
#include <torch/csrc/jit/api/compilation_unit.h>

#include <cmath>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "worker/torch/guarded.h"
#include "worker/torch/model_archive.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice {
namespace {

constexpr char kOptimizer[] = "optimizer";  // in the archive

std::string KeyOf(size_t parameter) { return absl::StrCat("parameter_", parameter); }

void CheckCanStep(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::LBFGS*>(&optimizer) == nullptr) return;
  throw std::invalid_argument(
      "LBFGS computes the gradient several times in a step, so it cannot be distributed; use "
      "another optimizer");
}

// The learning rate of each group. Options of a program's own may have none.
std::vector<absl::optional<double>> RatesOf(const torch::optim::Optimizer& optimizer) {
  std::vector<absl::optional<double>> rates;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    const auto rate = Guarded([&group] { return group.options().get_lr(); });
    rates.push_back(rate.ok() ? absl::optional<double>(*rate) : absl::nullopt);
  }
  return rates;
}

// The device of all of them; none if they are on several.
c10::optional<torch::Device> DeviceOf(
    const std::vector<std::pair<std::string, torch::Tensor>>& tensors) {
  c10::optional<torch::Device> device;
  for (const auto& [name, tensor] : tensors) {
    if (device.has_value() && *device != tensor.device()) return c10::nullopt;
    device = tensor.device();
  }
  return device;
}

}  // namespace

WorkerSteps::WorkerSteps(torch::optim::Optimizer& optimizer, const torch::nn::Module& module,
                         FlatModel& model)
    : optimizer_(optimizer), model_(model), trained_(Trained(module)), stepped_(Stepped()) {
  CheckCanStep(optimizer);
  NamesIn(optimizer.param_groups(), module);  // throws unless they are the module's
}

std::vector<const void*> WorkerSteps::Stepped() const {
  std::vector<const void*> stepped;
  for (const torch::optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
    for (const torch::Tensor& tensor : group.params()) {
      if (tensor.requires_grad()) stepped.push_back(tensor.unsafeGetTensorImpl());
    }
    stepped.push_back(nullptr);  // a group ends
  }
  return stepped;
}

void WorkerSteps::CheckWhole() const {
  if (!broken_) return;
  throw RemoteError(absl::FailedPreconditionError(
      "a step of the optimizer has broken off, so this worker's model is not the others' any more; "
      "end this process and start it again: it then takes the model of another worker"));
}

void WorkerSteps::CheckGroups() const {
  if (Stepped() == stepped_) return;
  throw std::invalid_argument(
      "the optimizer's parameters, or which of them require a gradient, have changed since the "
      "RemoteOptimizer was made; add, freeze and unfreeze them before");
}

ParameterClient::Model WorkerSteps::Handing() {
  return {[this] { return Save(); }, [this](absl::string_view bytes) { return Load(bytes); }};
}

void WorkerSteps::TakeMean(const HeldParameters& held) {
  model_.ScatterGradients();
  step_to_take_ = held.step_to_take();
  if (!step_to_take_) model_.ZeroGradients();
  has_mean_ = true;
}

void WorkerSteps::ClipNorm(double max_norm) {
  if (!std::isfinite(max_norm) || max_norm <= 0) {
    throw RemoteError(absl::InvalidArgumentError(
        absl::StrCat("the clip norm is ", max_norm, ", expected a finite number above 0")));
  }
  clip_norm_ = max_norm;
  if (!has_mean_) return;
  clip_norm_.reset();
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, tensor] : trained_) parameters.push_back(tensor);
  torch::nn::utils::clip_grad_norm_(parameters, max_norm);
}

void WorkerSteps::Step() {
  const absl::optional<double> clip_norm = std::exchange(clip_norm_, absl::nullopt);
  if (step_to_take_) {
    broken_ = true;  // until the optimizer has returned
    if (clip_norm.has_value()) ClipNorm(*clip_norm);
    optimizer_.step();
    step_to_take_ = broken_ = false;
    if (!std::exchange(has_stepped_, true)) CheckCanBeHanded();
  }
  has_mean_ = false;
}

void WorkerSteps::Forget() {
  if (step_to_take_) {
    throw RemoteError(absl::FailedPreconditionError(
        "the mean of the gradients was not stepped with, and the other workers step: call step() "
        "after reduce(), in every worker"));
  }
  has_mean_ = false;
  clip_norm_.reset();
}

// A class that does not override save() has that of torch's base, which is empty.
bool WorkerSteps::SavesNothing() const {
  torch::serialize::OutputArchive archive;
  optimizer_.save(archive);
  const auto written = archive.compilation_unit()->get_class("__torch__.Module");
  return written != nullptr && written->numAttributes() == 0;
}

// Warns of it when training begins, and not when a worker has died.
void WorkerSteps::CheckCanBeHanded() const {
  const auto nothing = Guarded([this] { return SavesNothing(); });
  if (!nothing.ok()) {
    LOG(WARNING) << "a worker that comes late could not take the optimizer's state: its save() "
                 << "fails: " << nothing.status().message();
  } else if (*nothing) {
    LOG(WARNING) << "the optimizer's save() writes nothing, so a worker that comes late "
                 << (optimizer_.state().empty() ? "takes the parameters only" : "is refused")
                 << "; override save() and load(), as the optimizers of torch do";
  }
}

absl::StatusOr<std::string> WorkerSteps::Save() const {
  if (Guarded([this] { return SavesNothing(); }).value_or(false) && !optimizer_.state().empty()) {
    return absl::FailedPreconditionError(
        "save() of the optimizer writes nothing, though that has a state; override it, and load()");
  }
  return Guarded([this] {
    torch::serialize::OutputArchive archive;
    // A view would bring all of its memory.
    for (size_t i = 0; i < trained_.size(); ++i) {
      archive.write(KeyOf(i), trained_[i].second.detach().clone(), /*is_buffer=*/true);
    }
    torch::serialize::OutputArchive of_optimizer(archive.compilation_unit());
    optimizer_.save(of_optimizer);
    archive.write(kOptimizer, of_optimizer);
    std::string bytes;
    archive.save_to([&bytes](const void* part, size_t size) {
      bytes.append(static_cast<const char*>(part), size);
      return size;
    });
    return bytes;
  });
}

absl::Status WorkerSteps::Load(absl::string_view bytes) {
  const auto loaded = Guarded([this, bytes] {
    const absl::Status sound = CheckHasNoCode(bytes);
    if (!sound.ok()) throw std::invalid_argument(std::string(sound.message()));
    const torch::NoGradGuard no_grad;
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size(), DeviceOf(trained_));
    std::vector<torch::Tensor> values(trained_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      archive.read(KeyOf(i), values[i], /*is_buffer=*/true);
    }
    torch::serialize::InputArchive of_optimizer;
    archive.read(kOptimizer, of_optimizer);
    const std::vector<absl::optional<double>> rates = RatesOf(optimizer_);
    optimizer_.load(of_optimizer);
    for (size_t i = 0; i < rates.size(); ++i) {
      if (rates[i].has_value()) optimizer_.param_groups()[i].options().set_lr(*rates[i]);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      torch::Tensor(trained_[i].second).copy_(values[i]);
    }
    return true;
  });
  has_taken_ = has_taken_ || loaded.ok();
  if (loaded.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the model of another worker cannot be read (", loaded.status().message(),
                   "); start all workers with one version of the program"));
}

}  // namespace sluice
