#include "worker/client/worker_round.h"

#include <glog/logging.h>

#include <utility>
#include <variant>

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

// The learning rate that a gradient's effect on the parameters is proportional to; 0 if there is
// none. The steps of optimizers other than SGD hardly depend on the size of a gradient, and
// momentum applies a gradient at the rates of later steps, too.
double RateOf(const PullHeader& held, const OptimizerConfig& job, const SharedOptions& changed) {
  const auto* const first = std::get_if<SgdOptions>(&job.options);
  if (first == nullptr) return 0;
  const auto& own = std::get<SgdOptions>(OptionsOf(job, changed, 0));  // the program may change it
  if (own.momentum > 0) return 0;
  return first->learning_rate > 0 ? held.learning_rate * own.learning_rate / first->learning_rate
                                  : held.learning_rate;
}

// Another worker needs this worker's model.
bool IsWanted(const absl::Status& status) { return ReasonOf(status) == Reason::kStateWanted; }

bool Counted(Disposition disposition) {
  return disposition == Disposition::kAccepted || disposition == Disposition::kApplied;
}

}  // namespace

WorkerRound::WorkerRound(WorkerSession& session, HeldParameters& parameters, Sequence sequence,
                         std::shared_ptr<const Attachments> attachments, SharedOptions options)
    : session_(session), held_(parameters) {
  header_.session = session.welcome().session;
  header_.sequence = sequence;
  header_.step = session.held().step;
  header_.incarnation = session.held().incarnation;
  header_.attachments = std::move(attachments);
  header_.options = std::move(options);
  PullHeader held = session.held();
  held.learning_rate = RateOf(held, session.request().optimizer, header_.options);
  header_.encodings = session.encodings().Begin(sequence, held, session.connection());
}

bool WorkerRound::MaySendEarly(WorkerSession& session) {
  return session.request().layout.tables().empty() && !session.connection().measures_push() &&
         !UsesOneCall(session) && !session.encodings().holds_back();
}

// PushPull of a connection sends elements as they are.
bool WorkerRound::UsesOneCall(WorkerSession& session) {
  return session.encodings().plain() &&
         session.connection().CanPushPull(session.request().layout.size());
}

bool WorkerRound::HasManyOptions() const {
  constexpr size_t kMany = 1000;
  return header_.options != nullptr && header_.options->groups().size() > kMany;
}

void WorkerRound::SendEarly(uint64_t offset, const SharedFloats& part) {
  if (push_ == nullptr) StartPush(BatchIs::kInSummary);
  if (open_) open_ = session_.encodings().SendEarly(offset, part, *push_, sent_);
}

void WorkerRound::StartPush(BatchIs batch) {
  const uint64_t elements = session_.request().layout.size();
  const RowGradients none;
  sent_ = session_.encodings().NothingSent(elements);
  push_ =
      session_.connection().StartPush(header_, elements, batch, rows_ == nullptr ? none : *rows_);
}

absl::StatusOr<RoundReport> WorkerRound::PushPull(const SharedFloats& gradient, PushSummary batch,
                                                  std::shared_ptr<const RowGradients> rows,
                                                  absl::Span<float> parameters) {
  const bool overwrites = gradient.values.data() == parameters.data();
  header_.samples = batch.samples;
  header_.loss = batch.loss;
  header_.running_means = std::move(batch.running_means);
  header_.options = std::move(batch.options);
  header_.clip_norm = batch.clip_norm;
  rows_ = std::move(rows);
  if (rows_ != nullptr) header_.row_bytes = RowBytesOf(*rows_);
  for (int failures = 0;;) {
    auto report = TryExchange(gradient, parameters);
    if (report.ok()) session_.encodings().End(Counted(report->disposition));
    if (report.ok()) return report;
    const absl::Status& error = report.status();
    if (MustWait(error)) {
      AwaitTurn(error);
      failures = 0;
    } else if (IsWanted(error)) {
      held_.OfferModel().IgnoreError();  // another one may be asked, or nobody needs it any more
    } else if (!MayRepeat(error) || failures++ == kMaxRejoins) {
      return error;
    } else if (IsCorrupt(error)) {
      LOG(WARNING) << session_.worker() << " repeats a push: " << error;
    } else {
      LOG(WARNING) << session_.worker() << " joins again: " << error.message();
      const absl::Status rejoined = session_.Rejoin();
      if (!rejoined.ok()) return rejoined;
      session_.encodings().ReportAgain();
      if (!session_.welcome().resumed) {
        LOG(WARNING) << "the server does not know " << session_.worker()
                     << " any more; its latest push is given up";
        return GiveUp(session_, held_, parameters);
      }
    }
    if (overwrites && !held_.complete()) return EndOverwritten(parameters);
    header_.session = session_.welcome().session;
    push_ = nullptr;
    open_ = true;
    outcome_.reset();
  }
}

// Ends a push whose pull broke off in the memory of what was pushed, so that it cannot be repeated.
// If the server has lost it, it is as if it had come too late.
absl::StatusOr<RoundReport> WorkerRound::EndOverwritten(absl::Span<float> parameters) {
  auto given_up = GiveUp(session_, held_, parameters);
  if (!given_up.ok()) return given_up;
  const Welcome& welcome = session_.welcome();
  const bool known = welcome.resumed && welcome.last_sequence >= header_.sequence;
  if (welcome.session != header_.session && !known) return given_up;
  const RoundReport report = ReportOf(*outcome_);
  session_.encodings().End(Counted(report.disposition));
  return report;
}

absl::StatusOr<RoundReport> WorkerRound::GiveUp(const WorkerSession& session, HeldParameters& held,
                                                absl::Span<float> parameters) {
  const absl::Status begun = held.Begin(HeldParameters::Earlier::kPushed, parameters);
  if (!begun.ok()) return begun;
  return RoundReport{session.held().step, Disposition::kStaleDropped, 0};
}

void WorkerRound::AwaitTurn(const absl::Status& why) const {
  LOG_EVERY_N(WARNING, 20) << session_.worker() << " waits with a push: " << why.message();
  if (IsStopped(why)) session_.connection().AwaitRetry(kPatience);
}

absl::StatusOr<RoundReport> WorkerRound::TryExchange(const SharedFloats& gradient,
                                                     absl::Span<float> parameters) {
  const Welcome& welcome = session_.welcome();
  PullRequest request;
  request.session = header_.session;
  request.min_step = welcome.step;
  request.after = header_.sequence;
  // If the gradient lies in `parameters`, it has replaced what the server has sent.
  const bool has_servers = held_.complete() && gradient.values.data() != parameters.data();
  if (has_servers && session_.held().incarnation == welcome.incarnation) {
    request.have_step = session_.held().step;
  }
  const bool fits_one_call = rows_ == nullptr && !HasManyOptions();
  if (one_call_ && push_ == nullptr && fits_one_call && UsesOneCall(session_)) {
    auto report = TryOneCall(request, gradient, parameters);
    if (!absl::IsDeadlineExceeded(report.status())) return report;
    one_call_ = false;  // of two calls, one alone has to wait
  }
  // A pull that starts before the push saves a round trip. It cannot be measured, because it may
  // arrive before Read() is called.
  const bool measured = session_.encodings().measures_pull();
  std::unique_ptr<PendingPull> pull = measured ? nullptr : session_.StartPull(request);
  const auto pushed = Push(gradient);
  if (!pushed.ok()) return pushed.status();
  if (measured) pull = session_.StartPull(request);
  session_.encodings().NotePush(*pushed, gradient.values);
  const auto pulled = held_.Finish(std::move(pull), request, parameters);
  if (!pulled.ok()) return pulled.status();
  session_.encodings().NotePull(*pulled, parameters);
  const absl::Status caught_up = held_.CatchUp(parameters);
  if (!caught_up.ok()) return caught_up;
  return ReportOf(*outcome_);
}

absl::StatusOr<RoundReport> WorkerRound::TryOneCall(const PullRequest& request,
                                                    const SharedFloats& gradient,
                                                    absl::Span<float> parameters) {
  const auto answer = session_.connection().PushPull(header_, gradient, request, parameters);
  if (!answer.ok()) return answer.status();
  held_.Keep(answer->pull, parameters);
  outcome_ = answer->push;
  const absl::Status caught_up = held_.CatchUp(parameters);
  if (!caught_up.ok()) return caught_up;
  return ReportOf(answer->push);
}

// Sends what was not sent early. If that breaks off, the push has ended.
absl::StatusOr<Transfer> WorkerRound::Push(const SharedFloats& gradient) {
  if (push_ == nullptr) StartPush(BatchIs::kInHeader);
  if (open_) session_.encodings().SendRest(gradient, *push_, sent_);
  const auto outcome = push_->Finish(
      {header_.samples, header_.loss, header_.running_means, header_.options, header_.clip_norm});
  const Transfer transfer = push_->transfer();
  push_ = nullptr;
  if (!outcome.ok()) return outcome.status();
  outcome_ = *outcome;
  // A gradient that does not count may not have been sent whole.
  return Counted(outcome->disposition) ? transfer : Transfer();
}

RoundReport WorkerRound::ReportOf(const PushOutcome& outcome) {
  options_differ_ = outcome.options_differ;
  return {session_.held().step, outcome.first_disposition.value_or(outcome.disposition),
          outcome.staleness};
}

}  // namespace sluice
