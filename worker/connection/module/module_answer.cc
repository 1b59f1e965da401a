#include "worker/connection/module/module_answer.h"

#include <utility>

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
  auto gradients = session.Gradients({message.parameters().begin(), message.parameters().end()});
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

absl::StatusOr<v1::ModuleReply> AnswerModule(v1::ModuleRequest&& request, ModuleSession& session) {
  switch (request.request_case()) {
    case v1::ModuleRequest::kForward:
      return AnswerForward(std::move(*request.mutable_forward()), session);
    case v1::ModuleRequest::kBackward:
      return AnswerBackward(std::move(*request.mutable_backward()), session);
    case v1::ModuleRequest::kCall:
      return AnswerCall(std::move(*request.mutable_call()), session);
    case v1::ModuleRequest::kGetGradients:
      return AnswerGradients(request.get_gradients(), session);
    case v1::ModuleRequest::kDropGradient:
      return DoneOr(session.DropGradient());
    case v1::ModuleRequest::kStep:
      return AnswerStep(request.step(), session);
    case v1::ModuleRequest::kLeave:
      return DoneOr(session.Leave(request.leave().stay()));
    default:
      return MakeError(Reason::kBadArgument,
                       "a request of Train is empty or a second `enter`; expected one of the "
                       "others in module_server.proto");
  }
}

}  // namespace sluice
