#include "worker/client/parameter_client.h"

#include <glog/logging.h>

#include <utility>

#include "worker/connection/call_retry.h"

namespace sluice {

absl::Status ParameterClient::Join(const JoinRequest& request, absl::Span<float> parameters) {
  absl::Status joined = parameters_.FitMeans(request.layout);
  if (joined.ok()) joined = session_.Join(request, row_cache_);
  if (!joined.ok()) return joined;
  sequence_ = welcome().last_sequence;
  rows_.Begin(row_cache_);
  return parameters_.Begin(HeldParameters::Earlier::kNothing, parameters);
}

std::unique_ptr<WorkerRound> ParameterClient::BeginRound() {
  sequence_ = sequence_.Next();
  std::shared_ptr<const Attachments> attachments;
  if (!attachments_.empty()) {
    attachments = std::make_shared<const Attachments>(std::exchange(attachments_, {}));
  }
  return std::make_unique<WorkerRound>(session_, parameters_, sequence_, std::move(attachments));
}

absl::StatusOr<RoundReport> ParameterClient::PushPull(const SharedFloats& gradient,
                                                      uint32_t samples, absl::optional<float> loss,
                                                      absl::Span<float> parameters) {
  auto rows = std::exchange(row_gradients_, nullptr);
  auto running_means = std::exchange(running_means_, nullptr);
  if (!parameters_complete()) {
    LOG(WARNING) << session_.worker() << " drops a gradient: an error has left its parameters "
                 << "incomplete, and it pulls them again";
    return WorkerRound::GiveUp(session_, parameters_, parameters);
  }
  std::unique_ptr<WorkerRound> round = early_ == nullptr ? BeginRound() : std::move(early_);
  return round->PushPull(gradient, {samples, loss, std::move(running_means)}, std::move(rows),
                         parameters);
}

void ParameterClient::SetRows(RowGradients rows) {
  session_.encodings().Choose(rows);
  row_gradients_ = std::make_shared<const RowGradients>(std::move(rows));
}

void ParameterClient::SetRunningMeans(const RunningMeans& means, absl::Span<float> gradient) {
  RunningMeans told =
      parameters_.means().Subtract(means, welcome().consistency.CountsFreshOnly(), gradient);
  running_means_ = told.empty() ? nullptr : std::make_shared<const RunningMeans>(std::move(told));
}

absl::Status ParameterClient::Attach(Attachment attachment) {
  attachments_.push_back(std::move(attachment));
  const absl::Status sound = CheckAttachments(attachments_);
  if (!sound.ok()) attachments_.pop_back();
  return sound;
}

void ParameterClient::SendEarly(uint64_t offset, const SharedFloats& part) {
  if (early_ == nullptr) {
    if (!parameters_complete() || !WorkerRound::MaySendEarly(session_)) return;
    early_ = BeginRound();
  }
  early_->SendEarly(offset, part);
}

void ParameterClient::GiveUpEarly() {
  if (early_ == nullptr) return;
  if (early_->attachments() != nullptr) {
    for (const Attachment& attachment : *early_->attachments()) Attach(attachment).IgnoreError();
  }
  session_.encodings().ReportAgain();
  early_ = nullptr;
}

absl::Status ParameterClient::AwaitEnd(absl::Span<float> parameters) {
  for (int broken = 0;;) {
    const auto last = session_.AwaitEnd();
    if (!last.ok()) return last.status();
    const absl::Status pulled = parameters_.Pull(*last, parameters);
    if (!IsLost(pulled) || ++broken > kMaxRejoins) return pulled;
    const absl::Status rejoined = session_.Rejoin();
    if (!rejoined.ok()) return rejoined;
  }
}

absl::Status ParameterClient::Leave(const Farewell& farewell) {
  rows_.LogReuse();
  return session_.Leave(farewell);
}

}  // namespace sluice
