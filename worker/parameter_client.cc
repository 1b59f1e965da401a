#include "worker/parameter_client.h"

#include <glog/logging.h>

#include <utility>

#include "common/error.h"

namespace sluice {
namespace {

constexpr int kMaxRejoins = 20;  // in a row, before a server is given up that lets nobody stay

// Whether joining again may help.
bool IsLost(const absl::Status& status) {
  const Reason reason = ReasonOf(status);
  return reason == Reason::kUnknownSession ||
         (absl::IsUnavailable(status) && reason == Reason::kNone);
}

}  // namespace

absl::Status ParameterClient::Join(const JoinRequest& request, absl::Span<float> parameters) {
  request_ = request;
  const absl::Status opened = OpenSession();
  if (!opened.ok()) return opened;
  sequence_ = welcome_.last_sequence;
  if (!welcome_.initialized && request.role == SessionRole::kWorker) {
    const auto offer = Share({parameters.begin(), parameters.end()});
    const auto initialized = connection_->Initialize(welcome_.session, offer);
    if (!initialized.ok()) return initialized.status();
    step_ = initialized->step;
    incarnation_ = welcome_.incarnation;
    if (initialized->accepted && welcome_.step <= step_) return absl::OkStatus();
  }
  return Pull(welcome_.step, parameters);
}

absl::Status ParameterClient::OpenSession() {
  auto welcome = connection_->Join(request_);
  if (!welcome.ok()) return welcome.status();
  welcome_ = *std::move(welcome);
  request_.job_id = welcome_.job_id;  // another job at this address is not meant
  return absl::OkStatus();
}

absl::Status ParameterClient::Rejoin() {
  absl::Status joined;
  for (int attempt = 0; attempt < kMaxRejoins; ++attempt) {
    const absl::Status connected = connection_->Reconnect();
    if (!connected.ok()) return connected;
    joined = OpenSession();
    if (joined.ok()) LOG(INFO) << request_.worker << " has joined again, at step " << welcome_.step;
    if (joined.ok() || !IsLost(joined)) return joined;
  }
  return joined;
}

absl::StatusOr<RoundReport> ParameterClient::Exchange(const SharedFloats& gradient,
                                                      uint32_t samples, absl::optional<float> loss,
                                                      absl::Span<float> parameters) {
  sequence_ = sequence_.Next();
  PushHeader header;
  header.sequence = sequence_;
  header.step = step_;
  header.incarnation = incarnation_;
  header.samples = samples;
  header.loss = loss;
  for (int attempt = 0;; ++attempt) {
    header.session = welcome_.session;
    auto report = TryExchange(header, gradient, parameters);
    if (report.ok() || !IsLost(report.status()) || attempt == kMaxRejoins) return report;
    LOG(WARNING) << request_.worker << " joins again: " << report.status().message();
    const absl::Status rejoined = Rejoin();
    if (!rejoined.ok()) return rejoined;
    if (welcome_.resumed) continue;
    LOG(WARNING) << "the server does not know " << request_.worker
                 << " any more; its latest push is given up";
    // By `after` the server also says that it reads nothing of this worker's memory any more.
    PullRequest request;
    request.session = welcome_.session;
    request.min_step = welcome_.step;
    request.after = welcome_.last_sequence;
    const absl::Status pulled = Finish(connection_->StartPull(request), request, parameters);
    if (!pulled.ok()) return pulled;
    return RoundReport{step_, Disposition::kStaleDropped, 0};
  }
}

absl::StatusOr<RoundReport> ParameterClient::TryExchange(const PushHeader& header,
                                                         const SharedFloats& gradient,
                                                         absl::Span<float> parameters) {
  PullRequest request;
  request.session = header.session;
  request.min_step = welcome_.step;
  request.after = header.sequence;
  // Parameters that were pushed in place of a gradient are not the server's any more.
  const bool has_servers = gradient.values.data() != parameters.data();
  if (has_servers && incarnation_ == welcome_.incarnation) request.have_step = step_;
  // Asked for at once: it costs no round trip of its own.
  std::unique_ptr<PendingPull> pull = connection_->StartPull(request);
  const auto outcome = connection_->Push(header, gradient);
  if (!outcome.ok()) return outcome.status();
  const absl::Status pulled = Finish(std::move(pull), request, parameters);
  if (!pulled.ok()) return pulled;
  return RoundReport{step_, outcome->first_disposition.value_or(outcome->disposition),
                     outcome->staleness};
}

absl::Status ParameterClient::AwaitEnd(absl::Span<float> parameters) {
  for (;;) {
    const auto event = connection_->NextEvent();
    const bool ended = event.ok() && event->kind == JobEvent::Kind::kEvicted;
    if (ended || IsLost(event.status())) {
      const absl::Status rejoined = Rejoin();
      if (!rejoined.ok()) return rejoined;
      continue;
    }
    if (!event.ok()) return event.status();
    if (event->kind == JobEvent::Kind::kTrainingFinished) return Pull(event->step, parameters);
    if (event->kind == JobEvent::Kind::kDraining) {
      return absl::UnavailableError("the server went down before training was over");
    }
  }
}

absl::Status ParameterClient::Leave(const Results& results) {
  const absl::Status left = connection_->Leave(welcome_.session, results);
  // Its session ended before, but all of its pushes were answered.
  const bool gone = ReasonOf(left) == Reason::kUnknownSession && results.empty();
  return gone ? absl::OkStatus() : left;
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
  incarnation_ = header->incarnation;
  return absl::OkStatus();
}

}  // namespace sluice
