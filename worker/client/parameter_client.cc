#include "worker/client/parameter_client.h"

#include <glog/logging.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

// Others read the slots of other steps meanwhile.
constexpr absl::Duration kPauseForSlots = absl::Milliseconds(500);

absl::Status CheckTakesOptions(const Welcome& welcome) {
  if (welcome.takes_options) return absl::OkStatus();
  return absl::UnimplementedError(
      "the server is of an older version of Sluice, which takes no options of the optimizer that "
      "change while it trains; upgrade the server");
}

absl::Status OptionsDiffer(const std::string& worker, const std::string& how) {
  return MakeError(
      Reason::kOptimizerMismatch,
      absl::StrCat(worker, " must have the options of the other workers (--options-must-agree), ",
                   "and does not: ", how,
                   ". Let the program change them in the same way in all workers"));
}

// Begins push `sequence`, which takes the attachments.
std::unique_ptr<WorkerRound> BeginRound(WorkerSession& session, HeldParameters& parameters,
                                        Sequence sequence, Attachments& attachments,
                                        const SharedOptions& options) {
  std::shared_ptr<const Attachments> taken;
  if (!attachments.empty()) {
    taken = std::make_shared<const Attachments>(std::exchange(attachments, {}));
  }
  return std::make_unique<WorkerRound>(session, parameters, sequence, std::move(taken), options);
}

}  // namespace

absl::Status ParameterClient::Join(const JoinRequest& request, absl::Span<float> parameters) {
  if (session_.left()) {
    const absl::Status returned = session_.Rejoin(WorkerSession::After::kLeave);
    if (!returned.ok()) return returned;
    const absl::Status begun = parameters_.Begin(HeldParameters::Earlier::kLeft, parameters);
    if (!begun.ok()) session_.LeaveAtOnce({{}, "it could not come back"}).IgnoreError();
    return begun;
  }
  absl::Status joined = parameters_.FitMeans(request.layout);
  if (joined.ok()) joined = session_.Join(request, row_cache_);
  if (!joined.ok()) return joined;
  sequence_ = welcome().last_sequence;
  rows_.Begin(row_cache_);
  return parameters_.Begin(HeldParameters::Earlier::kNothing, parameters);
}

absl::StatusOr<RoundReport> ParameterClient::PushPull(const SharedFloats& gradient,
                                                      uint32_t samples, absl::optional<float> loss,
                                                      absl::Span<float> parameters) {
  auto rows = std::exchange(row_gradients_, nullptr);
  auto running_means = std::exchange(running_means_, nullptr);
  const auto clip_norm = std::exchange(clip_norm_, absl::nullopt);
  if (!parameters_.complete()) {
    LOG(WARNING) << session_.worker() << " drops a gradient: an error has left its parameters "
                 << "incomplete, and it pulls them again";
    return WorkerRound::GiveUp(session_, parameters_, parameters);
  }
  std::unique_ptr<WorkerRound> round = std::move(early_);
  if (round == nullptr) {
    sequence_ = sequence_.Next();
    round = BeginRound(session_, parameters_, sequence_, attachments_, options_);
  }
  const PushSummary batch = {samples, loss, std::move(running_means), options_, clip_norm};
  auto report = round->PushPull(gradient, batch, std::move(rows), parameters);
  const bool fails = if_options_differ_ == IfOptionsDiffer::kFails;
  if (!round->options_differ().empty() && fails && report.ok()) {
    return OptionsDiffer(session_.worker(), round->options_differ());
  }
  if (!round->options_differ().empty() && !std::exchange(told_differ_, true)) {
    LOG(WARNING)
        << session_.worker() << ": " << round->options_differ()
        << ". A step is made with the options of the worker with the lowest index. Let the "
        << "program change them in the same way in all workers";
  }
  return report;
}

absl::Status ParameterClient::SetOptions(ChangedOptions::Groups changed) {
  absl::Status fits = changed.empty() ? absl::OkStatus() : CheckTakesOptions(welcome());
  if (fits.ok()) fits = session_.encodings().Adapt(session_.request(), &changed);
  SharedOptions options = ShareOptions(std::move(changed));
  if (fits.ok()) fits = CheckChanged(session_.request().optimizer, options);
  if (fits.ok()) options_ = std::move(options);
  return fits;
}

absl::Status ParameterClient::SetClipNorm(double norm) {
  if (!std::isfinite(norm) || norm <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the clip norm is ", norm, ", expected a finite number above 0"));
  }
  absl::Status takes = CheckTakesOptions(welcome());
  if (takes.ok()) clip_norm_ = norm;
  return takes;
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

absl::StatusOr<PulledSlots> ParameterClient::PullSlots() {
  if (session_.left()) {
    return absl::FailedPreconditionError(
        "the optimizer's state is pulled after this worker has left the job; pull it before");
  }
  for (int failures = 0;; ++failures) {
    auto slots = session_.connection().PullSlots(session_.welcome().session,
                                                 session_.request().layout.size());
    if (slots.ok() || failures == kMaxRejoins) return slots;
    if (IsLost(slots.status())) {
      LOG(WARNING) << session_.worker() << " joins again: " << slots.status().message();
      const absl::Status back = session_.Rejoin();
      if (!back.ok()) return back;
    } else if (absl::IsResourceExhausted(slots.status())) {
      session_.connection().AwaitRetry(kPauseForSlots);
    } else if (!IsCorrupt(slots.status())) {
      return slots;
    }
  }
}

absl::Status ParameterClient::Attach(Attachment attachment) {
  attachments_.push_back(std::move(attachment));
  const absl::Status sound = CheckAttachments(attachments_);
  if (!sound.ok()) attachments_.pop_back();
  return sound;
}

void ParameterClient::SendEarly(uint64_t offset, const SharedFloats& part) {
  if (early_ == nullptr) {
    if (!parameters_.complete() || !WorkerRound::MaySendEarly(session_)) return;
    sequence_ = sequence_.Next();
    early_ = BeginRound(session_, parameters_, sequence_, attachments_, options_);
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

absl::Status ParameterClient::Leave(const Farewell& farewell, IfLost lost) {
  if (lost == IfLost::kGivesUp) return session_.LeaveAtOnce(farewell);
  rows_.LogReuse();
  return session_.Leave(farewell);
}

}  // namespace sluice
