#include "worker/client/held_parameters.h"

#include <glog/logging.h>

#include <algorithm>
#include <vector>

#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

absl::Status LostTheSteps() {
  return absl::DataLossError(
      "the server came back without the steps that the workers of this job have made: start the "
      "job again, and give the server --checkpoint-dir, from which it comes back with them");
}

}  // namespace

absl::Status HeldParameters::FitMeans(const Layout& layout) {
  absl::Status fits = CheckFits(running_elements_, layout);
  if (fits.ok()) means_ = PulledMeans(running_elements_, layout);
  return fits;
}

// A worker that joins first takes back its own parameters after an error. Its gradient is not there
// yet, so the gradient's memory keeps them if this knows it: a vector of its own would be the
// third. A worker that joins again keeps none, because its gradient is still to be pushed: then a
// pull that breaks off leaves a mixture, as in PushPull(), unless it offers its parameters.
absl::Status HeldParameters::Begin(Earlier earlier, absl::Span<float> parameters) {
  const JoinRequest& request = session_.request();
  if (earlier != Earlier::kNothing || request.role != SessionRole::kWorker || restore_ != nullptr) {
    return BeginWith({}, earlier, parameters);
  }
  const bool fits =
      request.memory != nullptr && request.memory->floats().size() == parameters.size();
  std::vector<float> vector(fits ? 0 : parameters.size());
  const absl::Span<float> own = fits ? request.memory->floats() : absl::MakeSpan(vector);
  std::copy(parameters.begin(), parameters.end(), own.begin());
  absl::Status begun = BeginWith(own, earlier, parameters);
  if (fits) std::fill(own.begin(), own.end(), 0.0F);
  return begun;
}

// What is offered is kept until it was pulled, so that it can be offered again, if the program does
// not keep it. After an error `parameters` are `own` again, or what was kept. If the program keeps
// them, they count as a mixture: then what was restored is never pushed as a gradient.
absl::Status HeldParameters::BeginWith(absl::Span<const float> own, Earlier earlier,
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
    absl::Status begun = TryToBegin(earlier, parameters);
    if (begun.ok()) begun = CatchUp(parameters, earlier);
    if (begun.ok()) return begun;
    std::copy(own.begin(), own.end(), parameters.begin());
    complete_ = restore_ == nullptr && (complete_ || !own.empty() || parameters.empty());
    if (!IsLost(begun) || attempt == kMaxRejoins) return begun;
    LOG(WARNING) << session_.worker() << " joins again: " << begun.message();
    const absl::Status rejoined = session_.Rejoin();
    if (!rejoined.ok()) return rejoined;
  }
}

bool HeldParameters::MustOffer() const {
  return !session_.has_parameters() && session_.request().role == SessionRole::kWorker;
}

absl::Status HeldParameters::TryToBegin(Earlier earlier, absl::Span<float> parameters) {
  const Welcome& welcome = session_.welcome();
  PullRequest first;
  first.session = welcome.session;
  first.min_step = welcome.step;
  // With `after` the server answers only when it does not read this worker's memory any more.
  if (earlier != Earlier::kNothing) first.after = welcome.last_sequence;
  if (MustOffer()) {
    if (model_steps_.has_value()) return LostTheSteps();
    if (!complete_) return TakeOthers(first, parameters);
    // The worker whose constants are the job's offers the parameters that belong to them.
    if (session_.has_others_constants()) {
      const absl::Status pulled = PullOffered(first, parameters);
      if (!absl::IsDeadlineExceeded(pulled)) return pulled;
      LOG(WARNING) << session_.worker()
                   << " offers its parameters: the worker whose constants are the job's has not";
    }
    auto initialized = session_.connection().Initialize(welcome.session, parameters);
    // The server receives one offer at a time; the others wait.
    while (absl::IsDeadlineExceeded(initialized.status())) {
      LOG(WARNING) << session_.worker()
                   << " offers its parameters again: " << initialized.status().message();
      initialized = session_.connection().Initialize(welcome.session, parameters);
    }
    if (!initialized.ok()) return initialized.status();
    // This worker, too, pulls what it has offered: an encoding may change it, and the bits of a
    // training must not depend on whose offer came first.
  }
  return Finish(session_.StartPull(first), first, parameters).status();
}

// Waits, for the time of one pull, until another worker has offered its parameters. If none has, it
// returns DEADLINE_EXCEEDED, and `parameters` are unchanged.
absl::Status HeldParameters::PullOffered(const PullRequest& request, absl::Span<float> parameters) {
  std::unique_ptr<PendingPull> pull;
  absl::Status read;
  do {
    pull = session_.StartPull(request);
    read = Read(*pull, parameters).status();
  } while (absl::IsDeadlineExceeded(read) && pull->wrote());
  return read;
}

absl::Status HeldParameters::TakeOthers(const PullRequest& request, absl::Span<float> parameters) {
  LOG(WARNING) << session_.worker()
               << " waits for the parameters of another worker: the server has none, and its own "
               << "are incomplete";
  const absl::Status read = PullOffered(request, parameters);
  if (!absl::IsDeadlineExceeded(read)) return read;
  return absl::DataLossError(
      "the server came back without parameters, those of this worker are incomplete because a pull "
      "broke off, and no other worker has offered its own: start the job again, and give the "
      "server --checkpoint-dir, from which it comes back with its parameters");
}

absl::Status HeldParameters::Pull(Step min_step, absl::Span<float> parameters) {
  PullRequest request;
  request.session = session_.welcome().session;
  request.min_step = min_step;
  return Finish(session_.StartPull(request), request, parameters).status();
}

absl::StatusOr<Transfer> HeldParameters::Finish(std::unique_ptr<PendingPull> pull,
                                                PullRequest request, absl::Span<float> parameters) {
  auto read = Read(*pull, parameters);
  int corrupt = 0;
  while (absl::IsDeadlineExceeded(read.status()) ||
         (IsCorrupt(read.status()) && ++corrupt <= kMaxRepeats)) {
    if (!complete_) request.have_step.reset();
    pull = session_.StartPull(request);
    read = Read(*pull, parameters);
  }
  return read;
}

absl::StatusOr<Transfer> HeldParameters::Read(PendingPull& pull, absl::Span<float> parameters) {
  const auto header = pull.Read(parameters);
  if (!header.ok()) {
    if (pull.wrote()) complete_ = false;
    return header.status();
  }
  Keep(*header, parameters);
  return pull.transfer();
}

absl::Status HeldParameters::CatchUp(absl::Span<float> parameters, Earlier earlier) {
  step_to_take_ = false;
  if (model_.load == nullptr) return absl::OkStatus();
  const Welcome& welcome = session_.welcome();
  const bool lost = welcome.lost_steps > 0 && welcome.incarnation != model_incarnation_;
  // At the job's beginning all models are the parameters that were pulled.
  const bool begins =
      !model_steps_.has_value() && session_.held().optimizer_steps == 0 && !model_.takes_others;
  if (begins) model_steps_ = 0;
  // Steps of different histories have the same numbers.
  absl::Status caught_up = lost && !begins ? TakeModel(parameters) : absl::OkStatus();
  while (caught_up.ok() && !IsUpToDate(earlier)) caught_up = TakeModel(parameters);
  if (caught_up.ok()) model_incarnation_ = welcome.incarnation;
  // What was pulled is no gradient that could be pushed again.
  if (!caught_up.ok()) complete_ = false;
  return caught_up;
}

// Whether the model is that of the step that was pulled, or the step before it, which is then to be
// taken.
bool HeldParameters::IsUpToDate(Earlier earlier) {
  const uint64_t pulled = session_.held().optimizer_steps;
  step_to_take_ =
      earlier != Earlier::kLeft && model_steps_.has_value() && pulled == *model_steps_ + 1;
  if (step_to_take_) model_steps_ = pulled;
  return model_steps_ == pulled;
}

absl::Status HeldParameters::TakeModel(absl::Span<float> parameters) {
  const SessionId session = session_.welcome().session;
  auto state = session_.connection().PullState(session, model_steps_);
  for (int corrupt = 0; !state.ok();) {
    const bool is_late = absl::IsDeadlineExceeded(state.status());
    if (!is_late && !(IsCorrupt(state.status()) && ++corrupt <= kMaxRepeats)) {
      return state.status();
    }
    LOG(WARNING) << session_.worker() << " waits for the model: " << state.status().message();
    state = session_.connection().PullState(session, model_steps_);
  }
  const absl::Status loaded = state->own ? absl::OkStatus() : model_.load(state->bytes);
  if (!loaded.ok()) return loaded;
  LOG(INFO) << session_.worker()
            << (state->own ? " goes on with its own model, as that of step "
                           : " has taken another worker's model, of step ")
            << state->step.value();
  const bool is_later = state->step != session_.held().step;
  const absl::Status pulled = is_later ? Pull(state->step, parameters) : absl::OkStatus();
  model_steps_ = state->own ? session_.held().optimizer_steps : state->optimizer_steps;
  return pulled;
}

absl::Status HeldParameters::OfferModel() {
  const auto bytes = model_.save();
  const SessionId session = session_.welcome().session;
  absl::Status offered;
  for (int corrupt = 0; corrupt <= kMaxRepeats; ++corrupt) {
    offered = session_.connection().OfferState(session, bytes);
    if (!IsCorrupt(offered)) break;
  }
  LOG_IF(WARNING, !bytes.ok()) << session_.worker()
                               << " cannot write its model: " << bytes.status().message();
  LOG_IF(INFO, !offered.ok()) << session_.worker()
                              << " has offered its model in vain: " << offered.message();
  return offered;
}

void HeldParameters::Keep(const PullHeader& header, absl::Span<const float> parameters) {
  if (!header.not_modified) complete_ = true;
  means_.Keep(parameters);
  session_.Hold(header);
}

}  // namespace sluice
