#include "worker/connection/module/module_answer.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/push.h"
#include "worker/connection/module/module_messages.h"

namespace sluice {
namespace {

v1::ModuleReply FailureOf(const absl::Status& status) {
  v1::ModuleReply reply;
  *reply.mutable_failure() = ToProto(status);
  return reply;
}

v1::ModuleReply DoneOr(const absl::Status& status) {
  if (!status.ok()) return FailureOf(status);
  v1::ModuleReply reply;
  reply.mutable_done();
  return reply;
}

absl::Status CheckNamedOnce(const std::vector<std::string>& parameters) {
  std::set<absl::string_view> named;
  for (const std::string& name : parameters) {
    if (!named.insert(name).second) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("the gradient of \"", name,
                                    "\" was asked for twice at once; name each parameter once"));
    }
  }
  return absl::OkStatus();
}

v1::ModuleReply AnswerForward(v1::ForwardModule&& message, ModuleSession& session) {
  auto call = FromProto(std::move(message));
  if (!call.ok()) return FailureOf(call.status());
  auto output = session.Forward(*std::move(call));
  if (!output.ok()) return FailureOf(output.status());
  v1::ModuleReply reply;
  *reply.mutable_output() = ToProto(*std::move(output));
  return reply;
}

v1::ModuleReply AnswerBackward(v1::BackwardModule&& message, ModuleSession& session) {
  auto gradient = FromProto(std::move(*message.mutable_gradient()));
  if (!gradient.ok()) return FailureOf(gradient.status());
  auto gradients = session.Backward(message.call(), *std::move(gradient));
  if (!gradients.ok()) return FailureOf(gradients.status());
  v1::ModuleReply reply;
  *reply.mutable_gradients() = ToProto(*std::move(gradients));
  return reply;
}

v1::ModuleReply AnswerCall(v1::CallModule&& message, ModuleSession& session) {
  auto call = FromProto(std::move(message));
  if (!call.ok()) return FailureOf(call.status());
  auto returned = session.Call(*std::move(call));
  if (!returned.ok()) return FailureOf(returned.status());
  v1::ModuleReply reply;
  *reply.mutable_returned() = ToProto(*std::move(returned));
  return reply;
}

v1::ModuleReply AnswerGradients(const v1::GetModuleGradients& message, ModuleSession& session) {
  const std::vector<std::string> parameters(message.parameters().begin(),
                                            message.parameters().end());
  const absl::Status once = CheckNamedOnce(parameters);
  if (!once.ok()) return FailureOf(once);
  auto gradients = session.Gradients(parameters);
  if (!gradients.ok()) return FailureOf(gradients.status());
  v1::ModuleReply reply;
  *reply.mutable_gradients_of() = ToProto(*std::move(gradients));
  return reply;
}

v1::ModuleReply AnswerStep(const v1::StepModule& message, ModuleSession& session) {
  absl::optional<float> loss;
  if (message.has_loss()) loss = message.loss();
  const auto report = session.Step(message.samples(), loss);
  if (!report.ok()) return FailureOf(report.status());
  PushOutcome outcome;
  outcome.disposition = report->disposition;
  outcome.step = report->step;
  outcome.staleness = report->staleness;
  v1::ModuleReply reply;
  *reply.mutable_stepped() = ToProto(outcome);
  return reply;
}

}  // namespace

absl::StatusOr<v1::ModuleReply> ModuleAnswers::Answer(v1::ModuleRequest&& request) {
  const bool is_backward = request.has_backward();
  auto reply = AnswerOf(std::move(request));
  if (!reply.ok()) return reply;
  const absl::Status fits = CheckFits(*reply);
  if (!fits.ok()) reply = FailureOf(fits);
  if (is_backward && reply->has_failure()) spoiled_.Update(FromProto(reply->failure()));
  return reply;
}

v1::ModuleReply ModuleAnswers::DropGradient() {
  const absl::Status dropped = session_.DropGradient();
  if (dropped.ok()) spoiled_ = absl::OkStatus();
  return DoneOr(dropped);
}

v1::ModuleReply ModuleAnswers::Step(const v1::StepModule& message) {
  if (spoiled_.ok()) return AnswerStep(message, session_);
  v1::ModuleReply refused = FailureOf(spoiled_);
  DropGradient();
  return refused;
}

absl::StatusOr<v1::ModuleReply> ModuleAnswers::AnswerOf(v1::ModuleRequest&& request) {
  switch (request.request_case()) {
    case v1::ModuleRequest::kForward:
      return AnswerForward(std::move(*request.mutable_forward()), session_);
    case v1::ModuleRequest::kBackward:
      return AnswerBackward(std::move(*request.mutable_backward()), session_);
    case v1::ModuleRequest::kCall:
      return AnswerCall(std::move(*request.mutable_call()), session_);
    case v1::ModuleRequest::kGetGradients:
      return AnswerGradients(request.get_gradients(), session_);
    case v1::ModuleRequest::kDropGradient:
      return DropGradient();
    case v1::ModuleRequest::kStep:
      return Step(request.step());
    case v1::ModuleRequest::kLeave:
      return DoneOr(session_.Leave(request.leave().stay()));
    default:
      return MakeError(Reason::kBadArgument,
                       "a request of Train is empty or a second `enter`; expected one of the "
                       "others in module_server.proto");
  }
}

}  // namespace sluice
