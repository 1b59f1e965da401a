// A ParameterClient's sessions: how they begin, break and end.

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/client/constant_memory.h"
#include "worker/client/parameter_client.h"
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

}  // namespace

// ---- Joining ----

absl::Status ParameterClient::Join(const JoinRequest& request, absl::Span<float> parameters) {
  request_ = request;
  absl::Status fits = CheckFits(running_elements_, request.layout);
  if (fits.ok() && request.role == SessionRole::kWorker) {
    fits = CheckFits(constants_, request.layout.constants());
  }
  if (!fits.ok()) return fits;
  pulled_means_ = PulledMeans(running_elements_, request.layout);
  const absl::Status prepared = PrepareEncodings();
  if (!prepared.ok()) return prepared;
  absl::Status joined = OpenSession();
  if (IsLost(joined)) joined = Rejoin();
  if (!joined.ok()) return joined;
  sequence_ = welcome_.last_sequence;
  return Begin(Earlier::kNothing, parameters);
}

absl::Status ParameterClient::PrepareEncodings() {
  if (request_.role != SessionRole::kWorker) return absl::OkStatus();
  if (encoding_.choice.momentum()) {
    const auto momentum = TakeMomentum(request_.layout, &request_.optimizer);
    if (!momentum.ok()) return momentum.status();
    encoding_.momentum = *momentum;
  } else if (encoding_.error_feedback) {
    const std::string advice = AdviceOnMomentum(encoding_.choice, request_.optimizer);
    if (!advice.empty()) LOG(INFO) << Shown(request_.worker) << ": " << advice;
  }
  return absl::OkStatus();
}

absl::Status ParameterClient::OpenSession() {
  auto welcome = connection_->Join(request_);
  if (!welcome.ok()) return welcome.status();
  welcome_ = *std::move(welcome);
  server_has_parameters_ = welcome_.initialized;
  request_.job_id = welcome_.job_id;  // another job at this address is refused later
  if (welcome_.late) {
    LOG(WARNING) << "training began without " << Shown(request_.worker)
                 << ", which has come later than the server's --start-timeout; it takes part from "
                 << "step " << welcome_.step << " on";
  }
  absl::Status fits = FitRowCache();
  if (fits.ok()) fits = FitEncodings();
  return fits.ok() ? TakeConstants() : fits;
}

// What the program has changed in them since they were equal to the job's stays, unless the job has
// others now.
absl::Status ParameterClient::TakeConstants() {
  if (constants_.empty() || request_.role != SessionRole::kWorker) return absl::OkStatus();
  if (welcome_.constants.has_value() && welcome_.constants == constants_taken_) {
    return absl::OkStatus();
  }
  const uint64_t own = ChecksumOf(constants_);
  auto of_job = welcome_.constants.has_value() ? absl::StatusOr<uint64_t>(*welcome_.constants)
                                               : OfferConstants(own);
  has_others_constants_ = of_job.ok() && *of_job != own;
  if (has_others_constants_) {
    of_job = PullConstants(*connection_, welcome_.session, constants_);
    if (of_job.ok()) ++constants_pulled_;
  }
  if (!of_job.ok()) return of_job.status();
  constants_taken_ = *of_job;
  return absl::OkStatus();
}

// The server receives one offer at a time; the others wait.
absl::StatusOr<uint64_t> ParameterClient::OfferConstants(uint64_t checksum) {
  for (int corrupt = 0;;) {
    auto offered = connection_->OfferConstants(welcome_.session, checksum, constants_);
    const bool is_late = absl::IsDeadlineExceeded(offered.status());
    if (!is_late && !(IsCorrupt(offered.status()) && ++corrupt <= kMaxRepeats)) return offered;
    LOG(WARNING) << Shown(request_.worker)
                 << " offers the model's constants again: " << offered.status().message();
  }
}

// The number of servers that hold the vector decides how it is cut, and only a Welcome tells it.
absl::Status ParameterClient::FitEncodings() {
  const auto servers = std::max(uint32_t{1}, static_cast<uint32_t>(welcome_.servers.size()));
  if (request_.role != SessionRole::kWorker || servers == servers_) return absl::OkStatus();
  const absl::Status fits = CheckFitStripes(servers);
  if (!fits.ok()) return fits;
  if (servers_ > 0 && encoder_ != nullptr) {
    LOG(WARNING) << Shown(request_.worker) << " drops what encodings have left over: the job has "
                 << servers << " servers now, and had " << servers_;
  }
  servers_ = servers;
  if (request_.layout.size() == 0) return absl::OkStatus();  // rows need no encoder
  if (!encoding_.choice.plain()) {
    encoder_ =
        std::make_unique<GradientEncoder>(request_.layout, encoding_, request_.worker, servers);
    encoder_->Begin(sequence_, step_, learning_rate_);  // a push may be repeated
  }
  if (encoding_.choice.automatic() || pull_.automatic()) {
    auto_ = std::make_unique<AutoEncodings>(request_.layout, encoding_, pull_, request_.worker,
                                            servers, clock_);
  }
  return absl::OkStatus();
}

absl::Status ParameterClient::CheckFitStripes(uint32_t servers) {
  const Encoding* const refused = encoding_.choice.matrix_candidate();
  if (servers == 1 || refused == nullptr) return absl::OkStatus();
  LeaveAtOnce({{}, "its --push-encoding does not fit the number of servers"}).IgnoreError();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("--push-encoding=", EncodingChoiceName(encoding_.choice), " with ",
                                servers, " servers: auto cannot choose ", EncodingName(*refused),
                                " there, since each server would get every matrix whole; use it "
                                "alone, or leave it out of auto"));
}

// A worker that joins first takes back its own parameters after an error. Its gradient is not there
// yet, so the gradient's memory keeps them if this knows it: a vector of its own would be the
// third. A worker that joins again keeps none, because its gradient is still to be pushed: then a
// pull that breaks off leaves a mixture, as in PushPull(), unless it offers its parameters.
absl::Status ParameterClient::Begin(Earlier earlier, absl::Span<float> parameters) {
  if (earlier == Earlier::kPushed || request_.role != SessionRole::kWorker || restore_ != nullptr) {
    return BeginWith({}, earlier, parameters);
  }
  const bool fits =
      request_.memory != nullptr && request_.memory->floats().size() == parameters.size();
  std::vector<float> vector(fits ? 0 : parameters.size());
  const absl::Span<float> own = fits ? request_.memory->floats() : absl::MakeSpan(vector);
  std::copy(parameters.begin(), parameters.end(), own.begin());
  absl::Status begun = BeginWith(own, earlier, parameters);
  if (fits) std::fill(own.begin(), own.end(), 0.0F);
  return begun;
}

// Offers `parameters` to a job that has none, and fills them with the job's. If the session breaks,
// it does so in a later one. A mixture is not offered. What is offered is kept until it was pulled,
// so that it can be offered again, if the program does not keep it. After an error `parameters` are
// `own` again, or what was kept. If the program keeps them, they count as a mixture: then what was
// restored is never pushed as a gradient.
absl::Status ParameterClient::BeginWith(absl::Span<const float> own, Earlier earlier,
                                        absl::Span<float> parameters) {
  std::vector<float> kept;
  for (int attempt = 0;; ++attempt) {
    if (MustOffer() && restore_ != nullptr) {
      const absl::Status restored = restore_(parameters);
      complete_ = restored.ok();
      if (!restored.ok()) return restored;
    } else if (own.empty() && complete_ && MustOffer()) {
      kept.assign(parameters.begin(), parameters.end());
      own = kept;
    }
    const absl::Status begun = TryToBegin(earlier, parameters);
    if (begun.ok()) return begun;
    std::copy(own.begin(), own.end(), parameters.begin());
    complete_ = restore_ == nullptr && (complete_ || !own.empty() || parameters.empty());
    if (!IsLost(begun) || attempt == kMaxRejoins) return begun;
    LOG(WARNING) << Shown(request_.worker) << " joins again: " << begun.message();
    const absl::Status rejoined = Rejoin();
    if (!rejoined.ok()) return rejoined;
  }
}

bool ParameterClient::MustOffer() const {
  return !server_has_parameters_ && request_.role == SessionRole::kWorker;
}

absl::Status ParameterClient::TryToBegin(Earlier earlier, absl::Span<float> parameters) {
  PullRequest first;
  first.session = welcome_.session;
  first.min_step = welcome_.step;
  // With `after` the server answers only when it does not read this worker's memory any more.
  if (earlier == Earlier::kPushed) first.after = welcome_.last_sequence;
  if (MustOffer()) {
    if (!complete_) return TakeOthers(first, parameters);
    // The worker whose constants are the job's offers the parameters that belong to them.
    if (has_others_constants_) {
      const absl::Status pulled = PullOffered(first, parameters);
      if (!absl::IsDeadlineExceeded(pulled)) return pulled;
      LOG(WARNING) << Shown(request_.worker)
                   << " offers its parameters: the worker whose constants are the job's has not";
    }
    auto initialized = connection_->Initialize(welcome_.session, parameters);
    // The server receives one offer at a time; the others wait.
    while (absl::IsDeadlineExceeded(initialized.status())) {
      LOG(WARNING) << Shown(request_.worker)
                   << " offers its parameters again: " << initialized.status().message();
      initialized = connection_->Initialize(welcome_.session, parameters);
    }
    if (!initialized.ok()) return initialized.status();
    // This worker, too, pulls what it has offered: an encoding may change it, and the bits of a
    // training must not depend on whose offer came first.
  }
  return Finish(StartPull(first), first, parameters);
}

// Waits, for the time of one pull, until another worker has offered its parameters. If none has, it
// returns DEADLINE_EXCEEDED, and `parameters` are unchanged.
absl::Status ParameterClient::PullOffered(const PullRequest& request,
                                          absl::Span<float> parameters) {
  std::unique_ptr<PendingPull> pull;
  absl::Status read;
  do {
    pull = StartPull(request);
    read = Read(*pull, parameters);
  } while (absl::IsDeadlineExceeded(read) && pull->wrote());
  return read;
}

absl::Status ParameterClient::TakeOthers(const PullRequest& request, absl::Span<float> parameters) {
  LOG(WARNING) << Shown(request_.worker)
               << " waits for the parameters of another worker: the server has none, and its own "
               << "are incomplete";
  const absl::Status read = PullOffered(request, parameters);
  if (!absl::IsDeadlineExceeded(read)) return read;
  return absl::DataLossError(
      "the server came back without parameters, those of this worker are incomplete because a pull "
      "broke off, and no other worker has offered its own: start the job again, and give the "
      "server --checkpoint-dir, from which it comes back with its parameters");
}

// ---- Joining again ----

// Does not wait for a server that has ended the job.
absl::Status ParameterClient::Rejoin() {
  const absl::optional<JobEvent> end = EndToldBy(*connection_);
  if (end.has_value() && !end->diverged.empty()) return WentDown(end->diverged);
  absl::Status joined;
  for (int attempt = 0; attempt < kMaxRejoins; ++attempt) {
    if (attempt > 0) connection_->AwaitRetry(PauseBeforeRejoin(attempt));
    const absl::Status connected = connection_->Reconnect();
    if (!connected.ok()) return connected;
    joined = OpenSession();
    if (joined.ok()) LogReturn();
    if (joined.ok()) return CheckHasRows();
    if (!IsLost(joined)) return joined;
  }
  return joined;
}

// No worker has the rows, so a server that comes back without them has lost them.
absl::Status ParameterClient::CheckHasRows() const {
  const bool had_steps = step_ > Step() || welcome_.lost_steps > 0;
  if (request_.layout.tables().empty() || server_has_parameters_ || !had_steps) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      "the server came back without parameters, and has lost the rows of the model's tables, which "
      "no worker has: start the job again, and give the server --checkpoint-dir, from which it "
      "comes back with them");
}

void ParameterClient::LogReturn() const {
  LOG(INFO) << Shown(request_.worker) << " has joined again, at step " << welcome_.step;
  if (welcome_.incarnation == incarnation_ || welcome_.lost_steps == 0) return;
  LOG(WARNING) << "the server came back and has lost its last " << welcome_.lost_steps << " steps";
}

absl::StatusOr<RoundReport> ParameterClient::GiveUpPush(absl::Span<float> parameters) {
  const absl::Status begun = Begin(Earlier::kPushed, parameters);
  if (!begun.ok()) return begun;
  return RoundReport{step_, Disposition::kStaleDropped, 0};
}

// ---- Leaving ----

absl::Status ParameterClient::AwaitEnd(absl::Span<float> parameters) {
  for (int broken = 0;;) {
    const auto event = connection_->NextEvent(absl::InfiniteDuration());
    const bool ended = event.ok() && event->kind == JobEvent::Kind::kEvicted;
    const bool finished = event.ok() && event->kind == JobEvent::Kind::kTrainingFinished;
    if (finished) {
      const absl::Status pulled = Pull(event->step, parameters);
      if (!IsLost(pulled) || ++broken > kMaxRejoins) return pulled;
    }
    if (ended || finished || IsLost(event.status())) {
      const absl::Status rejoined = Rejoin();
      if (!rejoined.ok()) return rejoined;
      continue;
    }
    if (!event.ok()) return event.status();
    if (event->kind == JobEvent::Kind::kDraining) return WentDown(event->diverged);
  }
}

absl::Status ParameterClient::Leave(const Farewell& farewell) {
  left_ = true;
  if (row_cache_ != nullptr) {
    LOG(INFO) << Shown(request_.worker) << " used " << row_counts_.given - row_counts_.sent
              << " of " << row_counts_.given << " rows again that it had pulled before";
  }
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
    if (welcome_.step < step_) {
      LeaveAtOnce({{}, "the server has lost steps that this worker holds"}).IgnoreError();
      return LostAtTheEnd(welcome_.step, step_);
    }
  }
}

absl::Status ParameterClient::LeaveAtOnce(const Farewell& farewell) {
  left_ = true;
  return connection_->Leave(welcome_.session, farewell);
}

}  // namespace sluice
