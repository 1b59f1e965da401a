#include "worker/parameter_client.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Whether a worker that has pushed waits for the step after its gradient's. If so it can ask for
// that step at once; otherwise the pull has to follow the push.
bool WaitsForNextStep(const Consistency& consistency) {
  return consistency.mode == ConsistencyMode::kSync;
}

}  // namespace

absl::Status ParameterClient::Join(const JoinRequest& request, absl::Span<float> parameters) {
  const auto welcome = connection_->Join(request);
  if (!welcome.ok()) return welcome.status();
  welcome_ = *welcome;
  sequence_ = welcome_.last_sequence;
  if (!welcome_.initialized && request.role == SessionRole::kWorker) {
    const auto initialized = connection_->Initialize(welcome_.session, parameters);
    if (!initialized.ok()) return initialized.status();
    step_ = initialized->step;
    if (initialized->accepted && welcome_.step <= step_) return absl::OkStatus();
  }
  return Pull(welcome_.step, parameters);
}

absl::StatusOr<RoundReport> ParameterClient::Exchange(absl::Span<const float> gradient,
                                                      uint32_t samples, absl::optional<float> loss,
                                                      absl::Span<float> parameters) {
  sequence_ = sequence_.Next();
  PushHeader header;
  header.session = welcome_.session;
  header.sequence = sequence_;
  header.step = step_;
  header.incarnation = welcome_.incarnation;
  header.samples = samples;
  header.loss = loss;
  PullRequest request;
  request.session = welcome_.session;
  request.have_step = step_;
  std::unique_ptr<PendingPull> pull;
  if (WaitsForNextStep(welcome_.consistency)) {
    request.min_step = step_.Next();
    pull = connection_->StartPull(request);
  }
  const auto outcome = connection_->Push(header, gradient);
  if (!outcome.ok()) return outcome.status();
  if (pull == nullptr) pull = connection_->StartPull(request);
  const absl::Status pulled = Finish(std::move(pull), request, parameters);
  if (!pulled.ok()) return pulled;
  return RoundReport{step_, outcome->disposition, outcome->staleness};
}

absl::Status ParameterClient::AwaitEnd(absl::Span<float> parameters) {
  for (;;) {
    const auto event = connection_->NextEvent();
    if (!event.ok()) return event.status();
    if (event->kind == JobEvent::Kind::kTrainingFinished) return Pull(event->step, parameters);
    if (event->kind == JobEvent::Kind::kDraining) {
      return absl::UnavailableError("the server went down before training was over");
    }
  }
}

absl::Status ParameterClient::Leave(const Results& results) {
  return connection_->Leave(welcome_.session, results);
}

absl::Status ParameterClient::Pull(Step min_step, absl::Span<float> parameters) {
  PullRequest request;
  request.session = welcome_.session;
  request.min_step = min_step;
  return Finish(connection_->StartPull(request), request, parameters);
}

// A step may be long in coming, when other workers are late: then the pull is repeated.
absl::Status ParameterClient::Finish(std::unique_ptr<PendingPull> pull, const PullRequest& request,
                                     absl::Span<float> parameters) {
  auto header = pull->Read(parameters);
  while (absl::IsDeadlineExceeded(header.status())) {
    pull = connection_->StartPull(request);
    header = pull->Read(parameters);
  }
  if (!header.ok()) return header.status();
  step_ = header->step;
  return absl::OkStatus();
}

}  // namespace sluice
