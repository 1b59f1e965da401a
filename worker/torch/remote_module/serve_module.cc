#include "worker/torch/remote_module/serve_module.h"

#include <c10/util/Exception.h>

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/net/address.h"
#include "worker/connection/module/module_messages.h"
#include "worker/torch/guarded.h"
#include "worker/torch/remote_module/tensors.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/torch_optimizers.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

// Calls `body`, which uses what a trainer has sent. LibTorch's errors are then the trainer's.
template <typename Body>
auto OnTrainersTensors(Body body) -> absl::StatusOr<decltype(body())> {
  return Guarded([&] {
    try {
      return body();
    } catch (const c10::Error& error) {
      throw RemoteError(MakeError(
          Reason::kBadArgument,
          absl::StrCat("the module refuses these tensors: ", error.what_without_backtrace())));
    }
  });
}

absl::Status StatusOf(const absl::StatusOr<bool>& done) { return done.status(); }

// The session of one trainer: a module, and a worker of the job.
class ServedTrainer final : public ModuleSession {
 public:
  ServedTrainer(Job job, ServedModule served, const OptimizerConfig& config)
      : job_(std::move(job)),
        served_(std::move(served)),
        optimizer_(job_, *served_.module, config),
        device_(served_.module->parameters()[0].device()) {
    optimizer_.zero_grad();
  }
  ~ServedTrainer() override {
    if (!left_) optimizer_.abandon();
  }

  ModulePlace place() const override {
    return {optimizer_.index(), optimizer_.workers(), optimizer_.pushes_before()};
  }

  absl::StatusOr<PlainTensor> Forward(ForwardCall call) override {
    const bool full = kept_.size() >= kMaxKept || kept_.count(call.call) > 0;
    if (call.keep && full) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("this trainer has ", kept_.size(),
                                    " outputs without backward, at most ", kMaxKept,
                                    " with different numbers are kept; call backward(), step() or "
                                    "zero_grad(), or forward() under torch::NoGradGuard"));
    }
    return OnTrainersTensors([&] { return Run(std::move(call)); });
  }

  absl::StatusOr<std::vector<PlainTensor>> Backward(uint64_t call, PlainTensor gradient) override {
    const auto found = kept_.find(call);
    if (found == kept_.end()) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("there is no output of call ", call,
                                    " any more; each has one backward, before step() and "
                                    "zero_grad()"));
    }
    const Kept kept = std::move(found->second);
    kept_.erase(found);
    return OnTrainersTensors([&] { return GradientsOf(kept, std::move(gradient)); });
  }

  absl::StatusOr<NamedTensors> Gradients(const std::vector<std::string>& parameters) override {
    NamedTensors named;
    const auto trained = served_.module->named_parameters();
    for (const auto& parameter : trained) {
      if (parameters.empty() && parameter->requires_grad()) named.names.push_back(parameter.key());
    }
    if (!parameters.empty()) named.names = parameters;
    size_t bytes = 0;
    for (const std::string& name : named.names) {
      const torch::Tensor* const parameter = trained.find(name);
      if (parameter == nullptr || !parameter->requires_grad()) {
        return MakeError(Reason::kBadArgument,
                         absl::StrCat("the module trains no parameter \"", name, "\""));
      }
      bytes += parameter->nbytes();
      const absl::Status fits = CheckFits(bytes, "name fewer parameters");
      if (!fits.ok()) return fits;
      const torch::Tensor& gradient = parameter->grad();
      named.tensors.push_back(
          ToPlain(gradient.defined() ? gradient : torch::zeros_like(*parameter)));
    }
    return named;
  }

  absl::StatusOr<MethodValues> Call(MethodCall call) override {
    const auto found = served_.methods.find(call.method);
    if (found == served_.methods.end()) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("the model server offers no method \"", call.method, "\""));
    }
    if (!call.arguments.plain.empty()) {
      return MakeError(Reason::kBadArgument,
                       "a model server in C++ takes tensors as arguments, and found others");
    }
    auto returned = OnTrainersTensors([&] {
      const torch::NoGradGuard no_grad;
      SetMode(call.training);
      training_.reset();  // the method may change it
      MethodValues values;
      std::vector<torch::Tensor> arguments;
      for (PlainTensor& plain : call.arguments.tensors) {
        arguments.push_back(ToTorch(std::move(plain)).to(device_));
      }
      for (const torch::Tensor& value : found->second(arguments)) {
        values.tensors.push_back(ToPlain(value));
      }
      return values;
    });
    if (!returned.ok()) return returned;
    const absl::Status fits = CheckFits(returned->tensors);
    if (!fits.ok()) return fits;
    return returned;
  }

  absl::Status DropGradient() override {
    kept_.clear();
    return StatusOf(Guarded([this] {
      optimizer_.zero_grad();
      return true;
    }));
  }

  absl::StatusOr<RoundReport> Step(uint32_t samples, absl::optional<float> loss) override {
    auto report = Guarded([&] { return optimizer_.step(samples, loss); });
    const absl::Status dropped = DropGradient();
    if (report.ok() && !dropped.ok()) return dropped;
    return report;
  }

  absl::Status Leave(bool stay) override {
    kept_.clear();
    left_ = true;
    return StatusOf(Guarded([&] {
      if (stay) {
        optimizer_.await_end_of_training();
      } else {
        optimizer_.leave();
      }
      return true;
    }));
  }

 private:
  // What backward needs of a forward.
  struct Kept {
    std::vector<torch::Tensor> inputs;
    torch::Tensor output;
  };

  void SetMode(bool training) {
    if (training_ != training) served_.module->train(training);
    training_ = training;
  }

  PlainTensor Run(ForwardCall call) {
    const torch::AutoGradMode records(call.keep);
    SetMode(call.training);
    Kept kept;
    std::vector<torch::Tensor> inputs;
    for (PlainTensor& plain : call.inputs) {
      const bool requires_grad = plain.requires_grad && call.keep;
      torch::Tensor input = ToTorch(std::move(plain)).to(device_);
      kept.inputs.push_back(input.set_requires_grad(requires_grad));
      // A module may change its input in place, which autograd forbids for a leaf.
      inputs.push_back(requires_grad ? input.clone() : input);
    }
    kept.output = served_.forward(inputs);
    if (kept.output.defined() && kept.output.nbytes() > kMaxTensorBytes) {
      throw std::invalid_argument(absl::StrCat("the output has ", kept.output.nbytes(),
                                               " bytes, expected at most ", kMaxTensorBytes,
                                               "; use smaller batches"));
    }
    PlainTensor output = ToPlain(kept.output);
    if (output.requires_grad) kept_.emplace(call.call, std::move(kept));
    return output;
  }

  static std::vector<PlainTensor> GradientsOf(const Kept& kept, PlainTensor gradient) {
    torch::autograd::backward({kept.output},
                              {ToTorch(std::move(gradient)).to(kept.output.device())});
    std::vector<PlainTensor> gradients;
    for (const torch::Tensor& input : kept.inputs) {
      if (!input.requires_grad()) continue;
      const torch::Tensor& found = input.grad();
      gradients.push_back(ToPlain(found.defined() ? found : torch::zeros_like(input)));
    }
    return gradients;
  }

  const Job job_;
  const ServedModule served_;
  RemoteOptimizer optimizer_;
  const torch::Device device_;     // of the module's parameters
  absl::optional<bool> training_;  // the module's mode, if no method may have changed it
  std::map<uint64_t, Kept> kept_;  // by the number of the call
  bool left_ = false;
};

}  // namespace

std::unique_ptr<ModuleHost> StartModuleHost(const Job& job, ModuleMaker make,
                                            const torch::optim::OptimizerOptions& optimizer,
                                            const ServeModuleOptions& options) {
  ModuleHostOptions host;
  host.max_trainers = options.max_trainers;
  host.token = job.context().ticket().token;
  host.trainers = options.trainers;
  host.patience = job.context().connect_timeout();
  host.address = ValueOrThrow(ParseAddress(options.address));
  host.credentials = ValueOrThrow(job.context().CredentialsAt(host.address));
  const OptimizerConfig config = ConfigOf(optimizer);
  return ValueOrThrow(ModuleHost::Start(host, [&job, make, config](const std::string& trainer) {
    return Guarded([&]() -> std::unique_ptr<ModuleSession> {
      return std::make_unique<ServedTrainer>(job.WorkerNamed(trainer), make(), config);
    });
  }));
}

void ServeModule(const Job& job, ModuleMaker make, const torch::optim::OptimizerOptions& optimizer,
                 const ServeModuleOptions& options) {
  StartModuleHost(job, std::move(make), optimizer, options)->AwaitEnd();
}

}  // namespace sluice
