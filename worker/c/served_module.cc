#include "worker/c/served_module.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/net/address.h"
#include "worker/c/job.h"
#include "worker/c/model.h"
#include "worker/c/module_tensors.h"
#include "worker/connection/module/module_messages.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

// How a function of the program has ended.
absl::Status StatusOf(const sluice_module_reply& reply) {
  if (reply.code == SLUICE_OK) return absl::OkStatus();
  const Reason reason = reply.reason == nullptr ? Reason::kNone : ReasonFromName(reply.reason);
  const char* const message =
      reply.message == nullptr ? "the model server gave no reason" : reply.message;
  return MakeError(static_cast<absl::StatusCode>(reply.code), reason, message);
}

// A text of C ends at the first 0.
absl::Status CheckText(absl::string_view what, const std::string& text) {
  if (text.find('\0') == std::string::npos) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(what, " has a byte that is 0, expected a text without one"));
}

// Before they are copied.
absl::Status CheckReplyFits(const sluice_module_reply& reply, absl::string_view advice) {
  size_t bytes = 0;
  for (size_t i = 0; i < reply.tensor_count; ++i) bytes += reply.tensors[i].size;
  return CheckFits(bytes, advice);
}

absl::Status CheckAllSound(const std::vector<PlainTensor>& tensors) {
  absl::Status sound;
  for (const PlainTensor& tensor : tensors) sound.Update(CheckSound(tensor));
  return sound;
}

class SessionOfC final : public ModuleSession {
 public:
  // `session` is what functions.open() has made.
  SessionOfC(const sluice_module_functions& functions, void* session, sluice_module_place place)
      : functions_(functions),
        session_(session),
        place_{place.index, place.workers, place.pushes_before} {}
  ~SessionOfC() override { functions_.close(session_); }
  SessionOfC(const SessionOfC&) = delete;
  SessionOfC& operator=(const SessionOfC&) = delete;

  ModulePlace place() const override { return place_; }

  absl::StatusOr<PlainTensor> Forward(ForwardCall call) override {
    sluice_module_request request = Of(SLUICE_MODULE_FORWARD);
    request.call = call.call;
    request.training = call.training ? 1 : 0;
    request.keep = call.keep ? 1 : 0;
    auto output = TensorsOf(request, call.inputs);
    if (!output.ok()) return output.status();
    if (output->size() != 1) return absl::InternalError("the model server gave no output");
    return std::move((*output)[0]);
  }

  absl::StatusOr<std::vector<PlainTensor>> Backward(uint64_t call, PlainTensor gradient) override {
    sluice_module_request request = Of(SLUICE_MODULE_BACKWARD);
    request.call = call;
    std::vector<PlainTensor> tensors;
    tensors.push_back(std::move(gradient));
    return TensorsOf(request, tensors);
  }

  absl::StatusOr<NamedTensors> Gradients(const std::vector<std::string>& parameters) override {
    sluice_module_request request = Of(SLUICE_MODULE_GRADIENTS);
    std::vector<const char*> names;
    for (const std::string& name : parameters) {
      absl::Status text = CheckText("a parameter's name", name);
      if (!text.ok()) return text;
      names.push_back(name.c_str());
    }
    request.names = names.data();
    request.name_count = names.size();
    sluice_module_reply reply = {};
    absl::Status fits = Ask(request, reply);
    if (fits.ok()) fits = CheckReplyFits(reply, "name fewer parameters");
    if (!fits.ok()) return fits;
    auto gradients = NamedTensorsOf({reply.tensors, reply.tensor_count});
    if (!gradients.ok()) return gradients.status();
    const absl::Status sound = CheckAllSound(gradients->tensors);
    if (!sound.ok()) return sound;
    return gradients;
  }

  absl::StatusOr<MethodValues> Call(MethodCall call) override {
    absl::Status texts = CheckText("a method's name", call.method);
    texts.Update(CheckText("the text of a method's arguments", call.arguments.plain));
    if (!texts.ok()) return texts;
    sluice_module_request request = Of(SLUICE_MODULE_CALL);
    request.training = call.training ? 1 : 0;
    request.method = call.method.c_str();
    request.plain = call.arguments.plain.c_str();
    const auto of_c = OfC(call.arguments.tensors);
    request.tensors = of_c.data();
    request.tensor_count = of_c.size();
    sluice_module_reply reply = {};
    const absl::Status asked = Ask(request, reply);
    if (!asked.ok()) return asked;
    auto tensors = TensorsOf(reply);
    if (!tensors.ok()) return tensors.status();
    return MethodValues{reply.plain == nullptr ? "" : reply.plain, *std::move(tensors)};
  }

  absl::Status DropGradient() override { return Ask(Of(SLUICE_MODULE_DROP_GRADIENT)); }

  absl::StatusOr<RoundReport> Step(uint32_t samples, absl::optional<float> loss) override {
    sluice_module_request request = Of(SLUICE_MODULE_STEP);
    request.samples = samples;
    if (loss.has_value()) request.loss = &*loss;
    sluice_module_reply reply = {};
    const absl::Status asked = Ask(request, reply);
    if (!asked.ok()) return asked;
    return RoundReport{sluice::Step(reply.round.step),
                       static_cast<Disposition>(reply.round.disposition), reply.round.staleness};
  }

  absl::Status Leave(bool stay) override {
    sluice_module_request request = Of(SLUICE_MODULE_LEAVE);
    request.stay = stay ? 1 : 0;
    return Ask(request);
  }

 private:
  static sluice_module_request Of(int32_t kind) {
    sluice_module_request request = {};
    request.kind = kind;
    return request;
  }

  absl::Status Ask(const sluice_module_request& request, sluice_module_reply& reply) {
    functions_.answer(session_, &request, &reply);
    return StatusOf(reply);
  }
  absl::Status Ask(const sluice_module_request& request) {
    sluice_module_reply reply = {};
    return Ask(request, reply);
  }

  static absl::StatusOr<std::vector<PlainTensor>> TensorsOf(const sluice_module_reply& reply) {
    const absl::Status fits = CheckReplyFits(reply, "use smaller batches");
    if (!fits.ok()) return fits;
    auto tensors = PlainTensorsOf({reply.tensors, reply.tensor_count});
    if (!tensors.ok()) return tensors.status();
    const absl::Status sound = CheckAllSound(*tensors);
    if (!sound.ok()) return sound;
    return tensors;
  }

  absl::StatusOr<std::vector<PlainTensor>> TensorsOf(sluice_module_request& request,
                                                     const std::vector<PlainTensor>& tensors) {
    const auto of_c = OfC(tensors);
    request.tensors = of_c.data();
    request.tensor_count = of_c.size();
    sluice_module_reply reply = {};
    const absl::Status asked = Ask(request, reply);
    if (!asked.ok()) return asked;
    return TensorsOf(reply);
  }

  const sluice_module_functions functions_;
  void* const session_;
  const ModulePlace place_;
};

}  // namespace

ModuleSessionFactory SessionsOf(const sluice_module_functions& functions) {
  return [functions](const std::string& trainer) -> absl::StatusOr<std::unique_ptr<ModuleSession>> {
    sluice_module_place place = {0, 1, 0};
    sluice_module_reply reply = {};
    void* const session = functions.open(functions.context, trainer.c_str(), &place, &reply);
    const absl::Status opened = StatusOf(reply);
    if (!opened.ok()) return opened;
    if (session == nullptr) return absl::InternalError("the model server made no session");
    return std::make_unique<SessionOfC>(functions, session, place);
  };
}

}  // namespace sluice

// ---- sluice.h ----

sluice_code sluice_job_worker(const sluice_job* job, const char* name, sluice_job** worker) {
  return sluice::Guarded([&]() -> absl::Status {
    if (name == nullptr) return sluice::NoNameError("a worker");
    *worker = new sluice_job(job->job.WorkerNamed(name));
    return absl::OkStatus();
  });
}

sluice_code sluice_module_serve(const sluice_job* job, const char* address, uint32_t max_trainers,
                                uint32_t trainers, const sluice_module_functions* functions,
                                sluice_module_host** host) {
  return sluice::Guarded([&]() -> absl::Status {
    if (address == nullptr) {
      return absl::InvalidArgumentError(
          "the model server's address is NULL, expected host:port or unix:/path");
    }
    const sluice::WorkerContext& context = job->job.context();
    const auto parsed = sluice::ParseAddress(address);
    if (!parsed.ok()) return parsed.status();
    auto credentials = context.CredentialsAt(*parsed);
    if (!credentials.ok()) return credentials.status();
    sluice::ModuleHostOptions options;
    options.address = *parsed;
    options.token = context.ticket().token;
    options.credentials = *std::move(credentials);
    options.max_trainers = max_trainers;
    options.trainers = trainers;
    options.patience = context.connect_timeout();
    auto started = sluice::ModuleHost::Start(options, sluice::SessionsOf(*functions));
    if (!started.ok()) return started.status();
    *host = new sluice_module_host(*std::move(started));
    return absl::OkStatus();
  });
}

const char* sluice_module_host_address(const sluice_module_host* host) {
  return host->address.c_str();
}

sluice_code sluice_module_host_wait(sluice_module_host* host, double seconds) {
  return host->host->AwaitEndFor(sluice::DurationOf(seconds)) ? SLUICE_OK : SLUICE_PENDING;
}

void sluice_module_host_free(sluice_module_host* host) { delete host; }
