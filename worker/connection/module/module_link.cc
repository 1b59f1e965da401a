#include "worker/connection/module/module_link.h"

#include <grpcpp/grpcpp.h>

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/push.h"
#include "sluice/v1/module_server.grpc.pb.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/channel.h"
#include "worker/connection/module/module_messages.h"

namespace sluice {
namespace {

using Reply = v1::ModuleReply;

class ModuleLink final : public ModuleSession {
 public:
  ModuleLink(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
             std::string address)
      : address_(std::move(address)), stub_(v1::ModuleServer::NewStub(channel)) {
    Prepare(context_, absl::InfiniteDuration(), {token, ""});
    call_ = stub_->Train(&context_);
  }

  ~ModuleLink() override {
    if (call_ == nullptr) return;
    context_.TryCancel();
    call_->Finish();
  }

  absl::Status Enter(const std::string& trainer) {
    v1::ModuleRequest request;
    request.mutable_enter()->set_trainer(trainer);
    auto reply = Ask(request, Reply::kEntered);
    if (reply.ok()) place_ = FromProto(reply->entered());
    return reply.status();
  }

  ModulePlace place() const override { return place_; }

  absl::StatusOr<PlainTensor> Forward(ForwardCall call) override {
    absl::Status fits = CheckFits(call.inputs);
    if (!fits.ok()) return fits;
    bool wants_gradients = false;
    for (const PlainTensor& input : call.inputs) wants_gradients |= input.requires_grad;
    if (call.keep) wants_gradients_[call.call] = wants_gradients;
    v1::ModuleRequest request;
    *request.mutable_forward() = ToProto(std::move(call));
    auto reply = Ask(request, Reply::kOutput);
    if (!reply.ok()) return reply.status();
    return FromProto(std::move(*reply->mutable_output()));
  }

  absl::StatusOr<std::vector<PlainTensor>> Backward(uint64_t call, PlainTensor gradient) override {
    const auto forward = wants_gradients_.find(call);
    const bool waits = forward == wants_gradients_.end() || forward->second;
    if (forward != wants_gradients_.end()) wants_gradients_.erase(forward);
    v1::ModuleRequest request;
    request.mutable_backward()->set_call(call);
    *request.mutable_backward()->mutable_gradient() = ToProto(std::move(gradient));
    absl::Status fits = CheckFits(request);
    if (!fits.ok()) return fits;
    if (!waits) {
      ++unread_;
      absl::Status sent = Send(request);
      if (!sent.ok()) return sent;
      return std::vector<PlainTensor>();
    }
    auto reply = Ask(request, Reply::kGradients);
    if (!reply.ok()) return reply.status();
    return FromProto(std::move(*reply->mutable_gradients()));
  }

  absl::StatusOr<NamedTensors> Gradients(const std::vector<std::string>& parameters) override {
    v1::ModuleRequest request;
    auto* const names = request.mutable_get_gradients()->mutable_parameters();
    names->Assign(parameters.begin(), parameters.end());
    auto reply = Ask(request, Reply::kGradientsOf);
    if (!reply.ok()) return reply.status();
    return FromProto(std::move(*reply->mutable_gradients_of()));
  }

  absl::StatusOr<MethodValues> Call(MethodCall call) override {
    absl::Status fits = CheckFits(call.arguments.tensors);
    if (!fits.ok()) return fits;
    v1::ModuleRequest request;
    *request.mutable_call() = ToProto(std::move(call));
    auto reply = Ask(request, Reply::kReturned);
    if (!reply.ok()) return reply.status();
    return FromProto(std::move(*reply->mutable_returned()));
  }

  absl::Status DropGradient() override {
    wants_gradients_.clear();
    v1::ModuleRequest request;
    request.mutable_drop_gradient();
    return Ask(request, Reply::kDone).status();
  }

  absl::StatusOr<RoundReport> Step(uint32_t samples, absl::optional<float> loss) override {
    wants_gradients_.clear();
    v1::ModuleRequest request;
    request.mutable_step()->set_samples(samples);
    if (loss.has_value()) request.mutable_step()->set_loss(*loss);
    auto reply = Ask(request, Reply::kStepped);
    if (!reply.ok()) return reply.status();
    const auto outcome = FromProto(reply->stepped());
    if (!outcome.ok()) return outcome.status();
    return RoundReport{outcome->step, outcome->disposition, outcome->staleness};
  }

  absl::Status Leave(bool stay) override {
    wants_gradients_.clear();
    v1::ModuleRequest request;
    request.mutable_leave()->set_stay(stay);
    return Ask(request, Reply::kDone).status();
  }

 private:
  // Sends the request and returns its answer, which is the last one. An error of an earlier request
  // whose answer nobody has waited for comes first.
  absl::StatusOr<Reply> Ask(const v1::ModuleRequest& request, Reply::ReplyCase expected) {
    absl::Status fits = CheckFits(request);
    if (!fits.ok()) return fits;
    absl::Status sent = Send(request);
    if (!sent.ok()) return sent;
    absl::Status earlier;
    for (; unread_ > 0; --unread_) earlier.Update(Read(Reply::kGradients).status());
    auto reply = Read(expected);
    if (!earlier.ok()) return earlier;
    return reply;
  }

  absl::Status Send(const v1::ModuleRequest& request) {
    if (call_ != nullptr && call_->Write(request)) return absl::OkStatus();
    return End();
  }

  absl::StatusOr<Reply> Read(Reply::ReplyCase expected) {
    Reply reply;
    if (call_ == nullptr || !call_->Read(&reply)) return End();
    if (reply.has_failure()) return FromProto(reply.failure());
    if (reply.reply_case() == expected) return reply;
    return UnexpectedMessage("Train", absl::StrCat("field ", static_cast<int>(expected)));
  }

  // Why the call has ended.
  absl::Status End() {
    if (call_ != nullptr) {
      const grpc::Status status = std::exchange(call_, nullptr)->Finish();
      ended_ =
          status.ok() ? absl::UnavailableError("the model server ended the call") : EndOf(status);
      if (absl::IsUnavailable(ended_)) {
        ended_ = MakeError(
            absl::StatusCode::kUnavailable, ReasonOf(ended_),
            absl::StrCat("the model server at ", address_, " is gone: ", ended_.message()));
      }
    }
    return ended_;
  }

  const std::string address_;
  const std::unique_ptr<v1::ModuleServer::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ModuleRequest, Reply>> call_;  // null: ended
  absl::Status ended_;
  ModulePlace place_;
  // The kept forwards, and whether their backward has gradients to return.
  absl::flat_hash_map<uint64_t, bool> wants_gradients_;
  int unread_ = 0;  // answers to backwards that nobody has waited for
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleSession>> EnterModule(const ModuleLinkOptions& options) {
  KeepGrpcRunning();
  GrpcChannel channel(options.address, options.credentials, Connection::kForTensors);
  const absl::Status connected = channel.Connect(options.connect_timeout);
  if (!connected.ok()) {
    return absl::UnavailableError(absl::StrCat("no model server at ", options.address, " within ",
                                               absl::FormatDuration(options.connect_timeout), ": ",
                                               connected.message()));
  }
  auto link = std::make_unique<ModuleLink>(channel.get(), options.token, options.address);
  const absl::Status entered = link->Enter(options.trainer);
  if (!entered.ok()) return entered;
  return link;
}

}  // namespace sluice
