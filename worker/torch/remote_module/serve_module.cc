#include "worker/torch/remote_module/serve_module.h"

#include <c10/util/Exception.h>

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/net/address.h"
#include "worker/torch/guarded.h"
#include "worker/torch/remote_module/tensors.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/torch_optimizers.h"

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
        optimizer_(job_, *served_.module, config) {
    optimizer_.zero_grad();
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
    return OnTrainersTensors([&] {
      torch::autograd::backward({kept.output}, {ToTorch(std::move(gradient))});
      std::vector<PlainTensor> gradients;
      for (const torch::Tensor& input : kept.inputs) {
        if (!input.requires_grad()) continue;
        const torch::Tensor& found = input.grad();
        gradients.push_back(ToPlain(found.defined() ? found : torch::zeros_like(input)));
      }
      return gradients;
    });
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

  PlainTensor Run(ForwardCall call) {
    const torch::AutoGradMode records(call.keep);
    served_.module->train(call.training);
    Kept kept;
    for (PlainTensor& input : call.inputs) {
      const bool requires_grad = input.requires_grad && call.keep;
      kept.inputs.push_back(ToTorch(std::move(input)).set_requires_grad(requires_grad));
    }
    kept.output = served_.forward(kept.inputs);
    PlainTensor output = ToPlain(kept.output);
    if (call.keep) kept_.emplace(call.call, std::move(kept));
    return output;
  }

  const Job job_;
  const ServedModule served_;
  RemoteOptimizer optimizer_;
  std::map<uint64_t, Kept> kept_;  // by the number of the call
};

}  // namespace

std::unique_ptr<ModuleHost> StartModuleHost(const Job& job, ModuleMaker make,
                                            const torch::optim::OptimizerOptions& optimizer,
                                            const ServeModuleOptions& options) {
  ModuleHostOptions host;
  host.max_trainers = options.max_trainers;
  host.token = job.ticket().token;
  const auto valued = [](auto value) {
    if (!value.ok()) throw RemoteError(value.status());
    return *std::move(value);
  };
  host.address = valued(ParseAddress(options.address));
  host.credentials = valued(job.CredentialsToListenAt(host.address));
  const OptimizerConfig config = ConfigOf(optimizer);
  return valued(ModuleHost::Start(host, [&job, make, config](const std::string& trainer) {
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
