#include "worker/client/worker_session.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "worker/client/row_cache.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

// `diverged` is JobEvent's.
absl::Status WentDown(const std::string& diverged) {
  if (!diverged.empty()) return MakeError(Reason::kDiverged, diverged);
  return absl::UnavailableError("the server went down before training was over");
}

// A process that is started again trains them again.
absl::Status LostAtTheEnd(Step step, Step own) {
  return absl::DataLossError(absl::StrCat(
      "the server came back at step ", step.value(), ", and this worker had ended at step ",
      own.value(), ": start the workers again to train the steps that are lost, and give the ",
      "server --checkpoint-every or --durability=journal to lose fewer"));
}

// Of a launch, the first worker speaks.
void LogJoin(const JoinRequest& request, const Welcome& welcome) {
  if (request.role != SessionRole::kWorker || request.index.value_or(0) > 0) return;
  LOG(INFO) << request.worker << " has joined as worker " << welcome.index << " of "
            << welcome.workers << ", at step " << welcome.step;
}

}  // namespace

absl::Status WorkerSession::Join(const JoinRequest& request, const RowCacheOptions& row_cache) {
  request_ = request;
  row_cache_ = row_cache;
  if (request.role == SessionRole::kWorker) {
    absl::Status fits = CheckFits(constants_, request.layout.constants());
    if (fits.ok()) fits = encodings_.Prepare(request_);
    if (!fits.ok()) return fits;
  }
  const absl::Status opened = Open();
  const absl::Status joined = IsLost(opened) ? Rejoin() : opened;
  if (joined.ok()) LogJoin(request_, welcome_);
  return joined;
}

absl::Status WorkerSession::Open() {
  auto welcome = connection_->Join(request_);
  if (!welcome.ok()) return welcome.status();
  welcome_ = *std::move(welcome);
  has_parameters_ = welcome_.initialized;
  request_.job_id = welcome_.job_id;  // another job at this address is refused later
  if (welcome_.late) {
    LOG(WARNING) << "training began without " << worker()
                 << ", which has come later than the server's --start-timeout; it takes part from "
                 << "step " << welcome_.step << " on";
  }
  if (!request_.layout.tables().empty()) {
    const absl::Status suits = CheckSuits(row_cache_, welcome_.consistency.mode);
    if (!suits.ok()) connection_->Leave(welcome_.session, {}).IgnoreError();
    if (!suits.ok()) return suits;
  }
  if (request_.role != SessionRole::kWorker) return absl::OkStatus();
  const absl::Status fits = encodings_.Fit(request_, welcome_);
  if (fits.ok()) return TakeConstants();
  LeaveAtOnce({{}, "its --push-encoding does not fit the number of servers"}).IgnoreError();
  return fits;
}

// What the program has changed in them since they were equal to the job's stays, unless the job has
// others now.
absl::Status WorkerSession::TakeConstants() {
  const absl::optional<uint64_t>& known = welcome_.constants;
  if (constants_.empty() || (known.has_value() && known == constants_taken_)) {
    return absl::OkStatus();
  }
  const SessionId session = welcome_.session;
  const uint64_t own = ChecksumOf(constants_);
  auto of_job = known.has_value()
                    ? absl::StatusOr<uint64_t>(*known)
                    : OfferConstants(*connection_, session, request_.worker, own, constants_);
  has_others_constants_ = of_job.ok() && *of_job != own;
  if (has_others_constants_) {
    of_job = PullConstants(*connection_, session, constants_);
    if (of_job.ok()) ++constants_pulled_;
  }
  if (!of_job.ok()) return of_job.status();
  constants_taken_ = *of_job;
  return absl::OkStatus();
}

// Does not wait for a server that has ended the job.
absl::Status WorkerSession::Rejoin(After after) {
  const absl::optional<JobEvent> end = EndToldBy(*connection_);
  if (end.has_value() && !end->diverged.empty()) return WentDown(end->diverged);
  absl::Status joined;
  for (int attempt = 0; attempt < kMaxRejoins; ++attempt) {
    if (attempt > 0) connection_->AwaitRetry(PauseBeforeRejoin(attempt));
    const absl::Status connected = connection_->Reconnect();
    if (!connected.ok()) return connected;
    joined = Open();
    if (joined.ok() && after == After::kLeave) left_ = false;
    if (joined.ok()) LogReturn();
    if (joined.ok()) return CheckHasRows();
    if (!IsLost(joined)) return joined;
  }
  return joined;
}

// No worker has the rows, so a server that comes back without them has lost them.
absl::Status WorkerSession::CheckHasRows() const {
  const bool had_steps = held_.step > Step() || welcome_.lost_steps > 0;
  if (request_.layout.tables().empty() || has_parameters_ || !had_steps) return absl::OkStatus();
  return absl::DataLossError(
      "the server came back without parameters, and has lost the rows of the model's tables, which "
      "no worker has: start the job again, and give the server --checkpoint-dir, from which it "
      "comes back with them");
}

void WorkerSession::LogReturn() const {
  LOG(INFO) << worker() << " has joined again, at step " << welcome_.step;
  if (welcome_.incarnation == held_.incarnation || welcome_.lost_steps == 0) return;
  LOG(WARNING) << "the server came back and has lost its last " << welcome_.lost_steps << " steps";
}

absl::StatusOr<Step> WorkerSession::AwaitEnd() {
  for (;;) {
    const auto event = connection_->NextEvent(absl::InfiniteDuration());
    if (!event.ok() && !IsLost(event.status())) return event.status();
    if (event.ok() && event->kind == JobEvent::Kind::kTrainingFinished) return event->step;
    if (event.ok() && event->kind == JobEvent::Kind::kDraining) return WentDown(event->diverged);
    if (event.ok() && event->kind != JobEvent::Kind::kEvicted) continue;
    const absl::Status rejoined = Rejoin();
    if (!rejoined.ok()) return rejoined;
  }
}

absl::Status WorkerSession::Leave(const Farewell& farewell) {
  left_ = true;
  for (int broken = 0;; ++broken) {
    const absl::Status left = connection_->Leave(welcome_.session, farewell);
    if (!IsLost(left) || broken == kMaxRejoins) return left;
    // A server that has ended the session would take one who joins again for a new process.
    const LastWords told = LastWordsOf(*connection_);
    const bool drains = told.end.has_value() && told.end->kind == JobEvent::Kind::kDraining;
    const absl::Status rejoined = drains || told.evicted ? left : Rejoin();
    // The server lives, and its session has ended already. That is no error, since all pushes were
    // answered.
    const bool gone = ReasonOf(left) == Reason::kUnknownSession && farewell.results.empty();
    if (!rejoined.ok()) return gone ? absl::OkStatus() : rejoined;
    if (welcome_.step < held_.step) {
      LeaveAtOnce({{}, "the server has lost steps that this worker holds"}).IgnoreError();
      return LostAtTheEnd(welcome_.step, held_.step);
    }
  }
}

absl::Status WorkerSession::LeaveAtOnce(const Farewell& farewell) {
  left_ = true;
  return connection_->Leave(welcome_.session, farewell);
}

void WorkerSession::Hold(const PullHeader& header) {
  has_parameters_ = true;
  held_ = header;
}

std::unique_ptr<PendingPull> WorkerSession::StartPull(const PullRequest& request) {
  ++pulls_;
  return connection_->StartPull(request);
}

std::unique_ptr<PendingPull> WorkerSession::StartRowPull(const PullRequest& request,
                                                         const std::vector<RowIds>& rows) {
  ++pulls_;
  return connection_->StartRowPull(request, rows);
}

}  // namespace sluice
