#include "worker/c/remote_module.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/address.h"
#include "worker/c/model.h"
#include "worker/c/module_tensors.h"
#include "worker/worker_context.h"

using sluice::ModuleSession;
using sluice::PlainTensor;
using sluice::TrainerSession;

namespace {

// What `use` does in a trainer's session.
std::function<absl::Status(TrainerSession& session)> InSession(
    std::function<absl::Status(ModuleSession& session)> use) {
  return [use = std::move(use)](TrainerSession& session) { return session.Use(use); };
}

}  // namespace

absl::Status sluice_module::BeginEnter() {
  const absl::Status idle = calls_.CheckIdle("sluice_module_enter()");
  if (!idle.ok()) return idle;
  if (session_ != nullptr) {
    return absl::FailedPreconditionError("sluice_module_enter() was called twice");
  }
  calls_.Begin([this] {
    auto entered = sluice::EnterModule(options_);
    if (entered.ok()) session_ = std::make_unique<sluice::TrainerSession>(*std::move(entered));
    return entered.status();
  });
  return absl::OkStatus();
}

absl::Status sluice_module::BeginAsk(const sluice_module_request& request) {
  const absl::Status idle = calls_.CheckIdle("sluice_module_ask()");
  if (!idle.ok()) return idle;
  if (session_ == nullptr) {
    return absl::FailedPreconditionError(
        "sluice_module_ask() was called before sluice_module_enter() has ended");
  }
  auto ask = AskOf(request);
  if (!ask.ok()) return ask.status();
  tensors_.clear();
  names_.clear();
  plain_.clear();
  round_ = {};
  calls_.Begin([this, ask = *std::move(ask)] { return ask(*session_); });
  return absl::OkStatus();
}

absl::StatusOr<sluice_module::Ask> sluice_module::AskOf(const sluice_module_request& request) {
  auto tensors = sluice::PlainTensorsOf({request.tensors, request.tensor_count});
  if (!tensors.ok()) return tensors.status();
  switch (request.kind) {
    case SLUICE_MODULE_FORWARD:
      return Forward(request, *std::move(tensors));
    case SLUICE_MODULE_BACKWARD:
      if (tensors->size() != 1) break;
      return Backward(request.call, std::move((*tensors)[0]));
    case SLUICE_MODULE_DROP_GRADIENT:
      return InSession([](ModuleSession& session) { return session.DropGradient(); });
    case SLUICE_MODULE_STEP: {
      absl::optional<float> loss;
      if (request.loss != nullptr) loss = *request.loss;
      return InSession([this, samples = request.samples, loss](ModuleSession& session) {
        auto round = session.Step(samples, loss);
        if (round.ok()) round_ = *round;
        return round.status();
      });
    }
    case SLUICE_MODULE_LEAVE:
      return [stay = request.stay != 0](TrainerSession& session) { return session.Leave(stay); };
    case SLUICE_MODULE_GRADIENTS: {
      std::vector<std::string> names(request.names, request.names + request.name_count);
      return InSession([this, names = std::move(names)](ModuleSession& session) {
        auto gradients = session.Gradients(names);
        if (!gradients.ok()) return gradients.status();
        names_ = std::move(gradients->names);
        tensors_ = std::move(gradients->tensors);
        return absl::OkStatus();
      });
    }
    case SLUICE_MODULE_CALL:
      if (request.method == nullptr) return sluice::NoNameError("a method");
      return Call(request, *std::move(tensors));
    default:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "sluice_module_ask() got the kind ", request.kind, " with ", request.tensor_count,
      " tensors, expected one of SLUICE_MODULE_FORWARD to "
      "SLUICE_MODULE_CALL, and one tensor with SLUICE_MODULE_BACKWARD"));
}

sluice_module::Ask sluice_module::Forward(const sluice_module_request& request,
                                          std::vector<PlainTensor> inputs) {
  sluice::ForwardCall call{request.call, request.training != 0, request.keep != 0,
                           std::move(inputs)};
  return InSession([this, call = std::move(call)](ModuleSession& session) mutable {
    auto output = session.Forward(std::move(call));
    if (output.ok()) tensors_.push_back(*std::move(output));
    return output.status();
  });
}

sluice_module::Ask sluice_module::Backward(uint64_t call, PlainTensor gradient) {
  return InSession([this, call, gradient = std::move(gradient)](ModuleSession& session) mutable {
    auto gradients = session.Backward(call, std::move(gradient));
    if (gradients.ok()) tensors_ = *std::move(gradients);
    return gradients.status();
  });
}

sluice_module::Ask sluice_module::Call(const sluice_module_request& request,
                                       std::vector<PlainTensor> arguments) {
  sluice::MethodCall call;
  call.method = request.method;
  call.training = request.training != 0;
  call.arguments.plain = request.plain == nullptr ? "" : request.plain;
  call.arguments.tensors = std::move(arguments);
  return InSession([this, call = std::move(call)](ModuleSession& session) mutable {
    auto returned = session.Call(std::move(call));
    if (!returned.ok()) return returned.status();
    plain_ = std::move(returned->plain);
    tensors_ = std::move(returned->tensors);
    return absl::OkStatus();
  });
}

absl::optional<absl::Status> sluice_module::Wait(absl::Duration longest,
                                                 sluice_module_reply* reply) {
  const absl::optional<absl::Status> result = calls_.Wait(longest);
  if (!result.has_value() || !result->ok() || reply == nullptr) return result;
  of_c_ = sluice::OfC(tensors_, names_);
  *reply = {};
  reply->plain = plain_.c_str();
  reply->tensors = of_c_.data();
  reply->tensor_count = of_c_.size();
  reply->round = {round_.step.value(), static_cast<int32_t>(round_.disposition), round_.staleness};
  return result;
}

sluice_module_place sluice_module::place() const {
  if (session_ == nullptr) return {};
  const sluice::ModulePlace place = session_->place();
  return {place.index, place.workers, place.pushes_before};
}

// ---- sluice.h ----

sluice_code sluice_module_create(const sluice_job* job, const char* address,
                                 sluice_module** module) {
  return sluice::Guarded([&]() -> absl::Status {
    if (job->job.is_server()) {
      return absl::FailedPreconditionError(
          "the process that serves the job is no trainer; enter from another process");
    }
    const sluice::WorkerContext& context = job->job.context();
    sluice::ModuleLinkOptions options;
    options.address = address == nullptr ? context.ticket().address : address;
    const auto parsed = sluice::ParseAddress(options.address);
    if (!parsed.ok()) return parsed.status();
    auto credentials = context.CredentialsAt(*parsed);
    if (!credentials.ok()) return credentials.status();
    options.credentials = *std::move(credentials);
    options.token = context.ticket().token;
    options.connect_timeout = context.connect_timeout();
    options.trainer = job->job.name();
    *module = new sluice_module(std::move(options));
    return absl::OkStatus();
  });
}

sluice_code sluice_module_enter(sluice_module* module) {
  return sluice::CodeOf(module->BeginEnter());
}

sluice_code sluice_module_ask(sluice_module* module, const sluice_module_request* request) {
  return sluice::Guarded([&] { return module->BeginAsk(*request); });
}

sluice_code sluice_module_wait(sluice_module* module, double seconds, sluice_module_reply* reply) {
  const auto result = module->Wait(sluice::DurationOf(seconds), reply);
  return result.has_value() ? sluice::CodeOf(*result) : static_cast<sluice_code>(SLUICE_PENDING);
}

sluice_module_place sluice_module_client_place(const sluice_module* module) {
  return module->place();
}

void sluice_module_free(sluice_module* module) { delete module; }
