#include "worker/torch/remote_module/remote_module.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/net/address.h"
#include "worker/connection/module/module_link.h"
#include "worker/torch/remote_module/tensors.h"
#include "worker/worker_context.h"

namespace sluice {
// Autograd may run backward on a thread of its own.
class SharedModuleSession {
 public:
  explicit SharedModuleSession(std::unique_ptr<ModuleSession> session)
      : session_(std::move(session)) {}

  // Calls `use` with the session, on one thread at a time.
  template <typename Use>
  auto With(Use use) {
    const absl::MutexLock lock(&mu_);
    return use(*session_);
  }

 private:
  absl::Mutex mu_;
  const std::unique_ptr<ModuleSession> session_ ABSL_PT_GUARDED_BY(mu_);
};

namespace {

// The gradient function of an output.
class RemoteBackward final : public torch::autograd::Node {
 public:
  struct Input {
    bool requires_grad;
    torch::Device device;
  };

  RemoteBackward(std::shared_ptr<SharedModuleSession> session, uint64_t call,
                 std::vector<Input> inputs)
      : session_(std::move(session)), call_(call), inputs_(std::move(inputs)) {}

  std::string name() const override { return "RemoteBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (torch::GradMode::is_enabled()) {
      throw std::logic_error(
          "backward with create_graph through a remote module: it has no gradients of second "
          "order; leave create_graph out");
    }
    PlainTensor gradient =
        ToPlain(gradients[0].defined() ? gradients[0] : input_metadata(0).zeros_like());
    std::vector<PlainTensor> found = ValueOrThrow(session_->With(
        [&](ModuleSession& session) { return session.Backward(call_, std::move(gradient)); }));
    const auto wanted = std::count_if(inputs_.begin(), inputs_.end(), WantsGradient);
    if (found.size() != static_cast<size_t>(wanted)) {
      throw RemoteError(absl::InternalError(
          absl::StrCat("the model server gave ", found.size(), " gradients of inputs, expected ",
                       wanted, "; do trainer and model server run the same version?")));
    }
    auto next = found.begin();
    torch::autograd::variable_list result;
    for (const Input& input : inputs_) {
      result.emplace_back();
      if (WantsGradient(input)) result.back() = ToTorch(std::move(*next++)).to(input.device);
    }
    return result;
  }

  static bool WantsGradient(const Input& input) { return input.requires_grad; }

  const std::shared_ptr<SharedModuleSession> session_;
  const uint64_t call_;
  const std::vector<Input> inputs_;
};

std::unique_ptr<ModuleSession> Enter(const Job& job, const std::string& address) {
  ModuleLinkOptions options;
  options.address = address.empty() ? job.context().ticket().address : address;
  options.token = job.context().ticket().token;
  options.credentials =
      ValueOrThrow(job.context().CredentialsAt(ValueOrThrow(ParseAddress(options.address))));
  options.connect_timeout = job.context().connect_timeout();
  options.trainer = job.name();
  return ValueOrThrow(EnterModule(options));
}

}  // namespace

RemoteModule::RemoteModule(const Job& job, const std::string& address)
    : RemoteModule(Enter(job, address)) {}

RemoteModule::RemoteModule(std::unique_ptr<ModuleSession> session)
    : place_(session->place()),
      session_(std::make_shared<SharedModuleSession>(std::move(session))) {}

RemoteModule::~RemoteModule() {
  if (left_ || unwinding_.IsUnderWay()) return;
  session_->With([](ModuleSession& session) { return session.Leave(false); }).IgnoreError();
}

torch::Tensor RemoteModule::forward(const std::vector<torch::Tensor>& inputs) {
  ForwardCall call;
  call.call = ++calls_;
  call.training = training_;
  call.keep = torch::GradMode::is_enabled();
  std::vector<RemoteBackward::Input> kept;
  for (const torch::Tensor& input : inputs) {
    call.inputs.push_back(ToPlain(input));
    PlainTensor& plain = call.inputs.back();
    plain.requires_grad &= call.keep;
    kept.push_back({plain.requires_grad, input.device()});
  }
  PlainTensor plain = ValueOrThrow(
      session_->With([&](ModuleSession& session) { return session.Forward(std::move(call)); }));
  const bool has_gradient = plain.requires_grad;
  torch::Tensor output = ToTorch(std::move(plain));
  if (!has_gradient || !torch::isFloatingType(output.scalar_type())) return output;
  const std::shared_ptr<RemoteBackward> gradient_function(
      new RemoteBackward(session_, calls_, std::move(kept)), torch::autograd::deleteNode);
  gradient_function->set_next_edges(torch::autograd::collect_next_edges(inputs));
  torch::autograd::set_history(output, gradient_function);
  return output;
}

void RemoteModule::zero_grad() {
  ThrowIfError(session_->With([](ModuleSession& session) { return session.DropGradient(); }));
}

std::map<std::string, torch::Tensor> RemoteModule::gradients(
    const std::vector<std::string>& parameters) {
  NamedTensors named = ValueOrThrow(
      session_->With([&](ModuleSession& session) { return session.Gradients(parameters); }));
  std::map<std::string, torch::Tensor> gradients;
  for (size_t i = 0; i < named.names.size(); ++i) {
    gradients[named.names[i]] = ToTorch(std::move(named.tensors[i]));
  }
  return gradients;
}

std::vector<torch::Tensor> RemoteModule::call(const std::string& method,
                                              const std::vector<torch::Tensor>& arguments) {
  MethodCall call{method, training_, {}};
  for (const torch::Tensor& argument : arguments) {
    call.arguments.tensors.push_back(ToPlain(argument));
  }
  MethodValues returned = ValueOrThrow(
      session_->With([&](ModuleSession& session) { return session.Call(std::move(call)); }));
  if (!returned.plain.empty()) {
    throw RemoteError(absl::InvalidArgumentError(
        absl::StrCat("the method ", method, " has returned other values than tensors: ",
                     absl::string_view(returned.plain).substr(0, 200))));
  }
  std::vector<torch::Tensor> values;
  for (PlainTensor& value : returned.tensors) values.push_back(ToTorch(std::move(value)));
  return values;
}

RoundReport RemoteModule::step(uint32_t samples, absl::optional<float> loss) {
  return ValueOrThrow(
      session_->With([&](ModuleSession& session) { return session.Step(samples, loss); }));
}

void RemoteModule::leave() { Leave(false); }
void RemoteModule::await_end_of_training() { Leave(true); }

void RemoteModule::Leave(bool stay) {
  left_ = true;
  ThrowIfError(session_->With([stay](ModuleSession& session) { return session.Leave(stay); }));
}

std::vector<RoundReport> StepAll(const std::vector<RemoteModule*>& parts, uint32_t samples,
                                 absl::optional<float> loss) {
  std::vector<std::future<RoundReport>> steps;
  for (RemoteModule* const part : parts) {
    steps.push_back(std::async(std::launch::async,
                               [part, samples, loss] { return part->step(samples, loss); }));
  }
  for (const auto& step : steps) step.wait();
  std::vector<RoundReport> reports;
  for (auto& step : steps) reports.push_back(step.get());
  return reports;
}

}  // namespace sluice
