#include "worker/client/parameter_client.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/error.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

// The pause between two attempts at a push while the server cannot write its journal.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

// The server cannot write its journal, for example because its disk is full.
bool IsStopped(const absl::Status& status) { return ReasonOf(status) == Reason::kJournalStopped; }

// The server has come back without parameters.
bool IsBlank(const absl::Status& status) { return ReasonOf(status) == Reason::kNotInitialized; }

// The server lives, and the push has to wait: the in-flight limit holds it up, it began early, its
// answer waits until its step is durable, or the journal is stopped. It is repeated for as long as
// that lasts, like a pull.
bool MustWait(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || IsStopped(status);
}

bool MayRepeat(const absl::Status& status) {
  return IsCorrupt(status) || IsBlank(status) || IsLost(status);
}

bool Counted(Disposition disposition) {
  return disposition == Disposition::kAccepted || disposition == Disposition::kApplied;
}

}  // namespace

PushHeader ParameterClient::NextHeader() {
  sequence_ = sequence_.Next();
  PushHeader header;
  header.session = welcome_.session;
  header.sequence = sequence_;
  header.step = step_;
  header.incarnation = incarnation_;
  if (!attachments_.empty()) {
    header.attachments = std::make_shared<const Attachments>(std::move(attachments_));
    attachments_.clear();
  }
  if (auto_ != nullptr) {
    auto_->BeginRound(encoder_.get(), *connection_);
    header.encodings = auto_->TakeReport();
  }
  if (encoder_ != nullptr) encoder_->Begin(sequence_, step_, learning_rate_);
  return header;
}

absl::Status ParameterClient::Attach(Attachment attachment) {
  attachments_.push_back(std::move(attachment));
  const absl::Status sound = CheckAttachments(attachments_);
  if (!sound.ok()) attachments_.pop_back();
  return sound;
}

void ParameterClient::SetRunningMeans(const RunningMeans& means, absl::Span<float> gradient) {
  running_means_ = nullptr;
  if (means.empty()) return;
  RunningMeans told =
      pulled_means_.Subtract(means, welcome_.consistency.CountsFreshOnly(), gradient);
  if (!told.empty()) running_means_ = std::make_shared<const RunningMeans>(std::move(told));
}

void ParameterClient::GiveUpEarly() {
  if (!early_.has_value()) return;
  if (early_->header.attachments != nullptr) {
    for (const Attachment& attachment : *early_->header.attachments)
      Attach(attachment).IgnoreError();
  }
  if (auto_ != nullptr) auto_->ReportAgain();
  early_.reset();
}

void ParameterClient::SendEarly(uint64_t offset, const SharedFloats& part) {
  const bool holds_back = !complete_ || !request_.layout.tables().empty() ||
                          connection_->measures_push() || UsesOneCall() ||
                          (auto_ != nullptr && auto_->holds_back());
  if (!early_.has_value() && holds_back) return;
  if (!early_.has_value()) {
    early_.emplace(Round{NextHeader(), nullptr, nullptr});
    StartPush(*early_, BatchIs::kInSummary);
  }
  Round& round = *early_;
  if (!round.open) return;
  if (encoder_ != nullptr) {
    round.open = encoder_->SendEarly(offset, part, *round.push, round.sent);
  } else {
    round.open =
        round.push->Send(offset, part) && round.sent[0].Add(offset, part.values.size()).ok();
  }
}

void ParameterClient::StartPush(Round& round, BatchIs batch) const {
  const uint64_t elements = request_.layout.size();
  round.sent =
      encoder_ == nullptr ? GradientEncoder::Sent{Coverage(elements)} : encoder_->NothingSent();
  const RowGradients none;
  round.push = connection_->StartPush(round.header, elements, batch,
                                      round.rows == nullptr ? none : *round.rows);
}

// Sends what was not sent early. If it breaks off, the push has ended, and `sent` is not used any
// more.
void ParameterClient::SendRest(const SharedFloats& gradient, Round& round) const {
  if (!round.open) return;
  if (encoder_ != nullptr) {
    round.open = encoder_->Send(0, gradient, *round.push, round.sent);
    return;
  }
  Coverage& sent = round.sent[0];
  for (auto gap = sent.FirstGap(); round.open && gap.has_value(); gap = sent.FirstGap()) {
    const uint64_t size = gap->end - gap->begin;
    round.open = round.push->Send(gap->begin, gradient.Part(gap->begin, size)) &&
                 sent.Add(gap->begin, size).ok();
  }
}

absl::StatusOr<RoundReport> ParameterClient::PushPull(const SharedFloats& gradient,
                                                      uint32_t samples, absl::optional<float> loss,
                                                      absl::Span<float> parameters) {
  const std::shared_ptr<const RowGradients> rows = std::exchange(rows_, nullptr);
  const auto running_means = std::exchange(running_means_, nullptr);
  if (!complete_) {
    LOG(WARNING) << Shown(request_.worker) << " drops a gradient: an error has left its parameters "
                 << "incomplete, and it pulls them again";
    return GiveUpPush(parameters);
  }
  const bool overwrites = gradient.values.data() == parameters.data();
  const bool early = early_.has_value();
  Round round = early ? *std::move(early_) : Round{NextHeader(), rows, nullptr};
  early_.reset();
  PushHeader header = round.header;
  header.samples = samples;
  header.loss = loss;
  header.running_means = running_means;
  if (rows != nullptr) header.row_bytes = RowBytesOf(*rows);
  round.header = header;
  for (int failures = 0;;) {
    auto report = TryExchange(round, gradient, parameters);
    if (report.ok() && encoder_ != nullptr) encoder_->End(Counted(report->disposition));
    if (report.ok()) return report;
    const absl::Status& error = report.status();
    if (MustWait(error)) {
      AwaitTurn(error);
      failures = 0;
    } else if (!MayRepeat(error) || failures++ == kMaxRejoins) {
      return error;
    } else if (IsCorrupt(error)) {
      LOG(WARNING) << Shown(request_.worker) << " repeats a push: " << error;
    } else {
      LOG(WARNING) << Shown(request_.worker) << " joins again: " << error.message();
      const absl::Status rejoined = Rejoin();
      if (!rejoined.ok()) return rejoined;
      if (auto_ != nullptr) auto_->ReportAgain();
      if (!welcome_.resumed) {
        LOG(WARNING) << "the server does not know " << Shown(request_.worker)
                     << " any more; its latest push is given up";
        return GiveUpPush(parameters);
      }
    }
    if (overwrites && !complete_) return EndOverwritten(round, parameters);
    header.session = welcome_.session;
    Round next = {header, rows, nullptr};
    next.one_call = round.one_call;
    round = std::move(next);
  }
}

// Ends a push whose pull broke off in the memory of what was pushed, so that it cannot be repeated.
// If the server has lost it, it is as if it had come too late.
absl::StatusOr<RoundReport> ParameterClient::EndOverwritten(const Round& round,
                                                            absl::Span<float> parameters) {
  const absl::Status begun = Begin(Earlier::kPushed, parameters);
  if (!begun.ok()) return begun;
  const bool same_session = welcome_.session == round.header.session;
  const bool known = welcome_.resumed && welcome_.last_sequence >= round.header.sequence;
  if (!same_session && !known) return RoundReport{step_, Disposition::kStaleDropped, 0};
  const RoundReport report = ReportOf(*round.outcome);
  if (encoder_ != nullptr) encoder_->End(Counted(report.disposition));
  return report;
}

void ParameterClient::AwaitTurn(const absl::Status& why) const {
  LOG_EVERY_N(WARNING, 20) << Shown(request_.worker) << " waits with a push: " << why.message();
  if (IsStopped(why)) connection_->AwaitRetry(kPatience);
}

absl::StatusOr<RoundReport> ParameterClient::TryExchange(Round& round, const SharedFloats& gradient,
                                                         absl::Span<float> parameters) {
  const PushHeader& header = round.header;
  PullRequest request;
  request.session = header.session;
  request.min_step = welcome_.step;
  request.after = header.sequence;
  // If the gradient lies in `parameters`, it has replaced what the server has sent.
  const bool has_servers = complete_ && gradient.values.data() != parameters.data();
  if (has_servers && incarnation_ == welcome_.incarnation) request.have_step = step_;
  if (round.one_call && round.push == nullptr && round.rows == nullptr && UsesOneCall()) {
    auto report = TryOneCall(header, request, gradient, parameters);
    if (!absl::IsDeadlineExceeded(report.status())) return report;
    round.one_call = false;  // of two calls, one alone has to wait
  }
  // A pull that starts before the push saves a round trip. It cannot be measured, because it may
  // arrive before Read() is called.
  const bool measured = auto_ != nullptr && auto_->measures_pull();
  std::unique_ptr<PendingPull> pull = measured ? nullptr : StartPull(request);
  const auto outcome = Push(round, gradient);
  if (!outcome.ok()) return outcome.status();
  round.outcome = *outcome;
  if (measured) pull = StartPull(request);
  // A gradient that does not count may not have been sent whole.
  if (!Counted(outcome->disposition)) pushed_ = Transfer();
  if (auto_ != nullptr) auto_->EndPush(pushed_, gradient.values);
  const absl::Status pulled = Finish(std::move(pull), request, parameters);
  if (!pulled.ok()) return pulled;
  if (auto_ != nullptr) auto_->EndPull(pulled_, parameters);
  return ReportOf(*outcome);
}

// PushPull sends elements as they are.
bool ParameterClient::UsesOneCall() const {
  return encoder_ == nullptr && auto_ == nullptr &&
         connection_->CanPushPull(request_.layout.size());
}

absl::StatusOr<RoundReport> ParameterClient::TryOneCall(const PushHeader& header,
                                                        const PullRequest& request,
                                                        const SharedFloats& gradient,
                                                        absl::Span<float> parameters) {
  const auto answer = connection_->PushPull(header, gradient, request, parameters);
  if (!answer.ok()) return answer.status();
  KeepHeader(answer->pull, parameters);
  return ReportOf(answer->push);
}

RoundReport ParameterClient::ReportOf(const PushOutcome& outcome) const {
  return {step_, outcome.first_disposition.value_or(outcome.disposition), outcome.staleness};
}

absl::StatusOr<PushOutcome> ParameterClient::Push(Round& round, const SharedFloats& gradient) {
  if (round.push == nullptr) StartPush(round, BatchIs::kInHeader);
  SendRest(gradient, round);
  auto outcome =
      round.push->Finish({round.header.samples, round.header.loss, round.header.running_means});
  pushed_ = round.push->transfer();
  round.push = nullptr;
  return outcome;
}

std::unique_ptr<PendingPull> ParameterClient::StartPull(const PullRequest& request) {
  ++pulls_;
  return connection_->StartPull(request);
}

absl::Status ParameterClient::Pull(Step min_step, absl::Span<float> parameters,
                                   absl::optional<Sequence> after) {
  PullRequest request;
  request.session = welcome_.session;
  request.min_step = min_step;
  request.after = after;
  return Finish(StartPull(request), request, parameters);
}

// Repeats the pull while other workers are late, and if it was damaged on its way.
absl::Status ParameterClient::Finish(std::unique_ptr<PendingPull> pull, PullRequest request,
                                     absl::Span<float> parameters) {
  absl::Status read = Read(*pull, parameters);
  int corrupt = 0;
  while (absl::IsDeadlineExceeded(read) || (IsCorrupt(read) && ++corrupt <= kMaxRepeats)) {
    if (!complete_) request.have_step.reset();
    pull = StartPull(request);
    read = Read(*pull, parameters);
  }
  return read;
}

absl::Status ParameterClient::Read(PendingPull& pull, absl::Span<float> parameters) {
  const auto header = pull.Read(parameters);
  if (!header.ok()) {
    if (pull.wrote()) complete_ = false;
    return header.status();
  }
  pulled_ = pull.transfer();
  KeepHeader(*header, parameters);
  return absl::OkStatus();
}

void ParameterClient::KeepHeader(const PullHeader& header, absl::Span<const float> parameters) {
  if (!header.not_modified) complete_ = true;
  pulled_means_.Keep(parameters);
  server_has_parameters_ = true;
  step_ = header.step;
  incarnation_ = header.incarnation;
  learning_rate_ = header.learning_rate;
}

}  // namespace sluice
