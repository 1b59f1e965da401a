#include "server/shard/leader_store.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/shard/step_loop.h"

namespace sluice {
namespace {

// `norm` is the gradient's, if it was measured.
absl::Status CheckNorm(absl::optional<double> norm, const Guards& guards) {
  if (!norm.has_value() || *norm <= *guards.max_push_norm) return absl::OkStatus();
  return MakeError(Reason::kNormTooLarge,
                   absl::StrCat("the gradient's norm is ", *norm, ", this server takes at most ",
                                *guards.max_push_norm, "; look for the batch that caused it"));
}

absl::Status CheckOptions(const OptimizerConfig& job, const LearningRateSchedule& schedule,
                          const PushHeader& header) {
  if (header.clip_norm.has_value() && std::holds_alternative<AveragingOptions>(job.options)) {
    return MakeError(Reason::kBadOptimizer,
                     "a push of parameters has a clip norm, expected none: the worker's own "
                     "optimizer has the gradients");
  }
  const SharedOptions& changed = header.options;
  const absl::Status fits = CheckChanged(job, changed);
  if (!fits.ok() || changed == nullptr || schedule.is_constant()) return fits;
  for (const auto& [group, options] : changed->groups()) {
    const double first = LearningRateOf(OptionsOf(job, nullptr, group));
    if (LearningRateOf(options) == first) continue;
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat("the worker's program has changed the learning rate from ", first, " to ",
                     LearningRateOf(options), ", and the server has a schedule of its own; leave ",
                     "out the program's scheduler, or --lr-schedule and --lr-warmup-steps"));
  }
  return absl::OkStatus();
}

// Before the push waits, so that nobody fills the memory with options of groups that do not exist.
absl::Status CheckGroups(const PushHeader& header, const OptimizerConfig& optimizer) {
  if (header.options == nullptr) return absl::OkStatus();
  const size_t groups = optimizer.groups.size();
  const size_t changed = header.options->groups().size();
  if (changed <= groups + 1) return absl::OkStatus();
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("the options of ", changed,
                                " groups have changed, expected at most ", groups + 1));
}

PushName PushNameOf(const PushHeader& header) {
  return {header.session, header.sequence, header.attempt};
}

}  // namespace

// ---- Offers of initial parameters ----

absl::StatusOr<absl::optional<InitializeOutcome>> LeaderStore::JudgeOffer(SessionId session,
                                                                          uint32_t attempt) {
  absl::MutexLock lock(&job_.mu);
  const JobLifecycle& lifecycle = job_.parts.lifecycle;
  absl::Status may = lifecycle.serving();
  if (may.ok()) may = job_.parts.roster.sessions().FindWorker(session).status();
  const bool wanted = may.ok() && !lifecycle.initialized();
  if (!wanted) job_.others.Pass({session, Sequence(), attempt});
  if (!may.ok()) return may;
  absl::optional<InitializeOutcome> answer;
  if (!wanted) answer.emplace().step = job_.parts.step.number();
  return answer;
}

absl::StatusOr<InitializeStart> LeaderStore::BeginInitialize(SessionId session, uint32_t attempt) {
  const auto answer = JudgeOffer(session, attempt);
  if (!answer.ok()) return answer.status();
  InitializeStart start;
  if (answer->has_value()) {
    start.answer = **answer;
    return start;
  }
  absl::MutexLock lock(&job_.mu);
  const PushName name = {session, Sequence(), attempt};
  const absl::Status begun = job_.others.Begin(name);
  if (!begun.ok()) return begun;
  const PushId id = job_.parts.admission.NextId();
  PushHeader header;
  header.session = session;
  header.attempt = attempt;
  start.parameters =
      mutable_stripe().Begin(id, header, std::make_shared<std::atomic<uint64_t>>(0), false);
  job_.others.Admit({id, name});
  return start;
}

PushId LeaderStore::FinishInitialize(std::unique_ptr<PendingPush> parameters,
                                     InitializeCallback done) {
  const HaveReport own = mutable_stripe().End(*parameters, absl::OkStatus(), false);
  CompletingLock lock(&job_.mu);
  if (own.refused.ok()) arrived_.Keep(std::move(parameters));
  // Copying takes a time that grows with the model, so neither gRPC's thread nor a link's does it.
  const auto gathered = [this, done = std::move(done)](const HaveReport& whole) {
    executors().arrivals->Run([this, whole, done] { done(Adopt(whole)); });
  };
  job_.others.FinishOwn(own, gathered, lock.completions());
  return own.push;
}

absl::StatusOr<InitializeOutcome> LeaderStore::Adopt(const HaveReport& whole) {
  const std::unique_ptr<PendingPush> offer = arrived_.Drop(whole.push);
  if (!whole.refused.ok()) return whole.refused;
  Step step;
  {
    absl::MutexLock lock(&job_.mu);
    step = job_.parts.step.number();
  }
  std::shared_ptr<Snapshot> first = mutable_stripe().MakeFirst(*offer, step);
  InitializeOutcome outcome;
  {
    CompletingLock lock(&job_.mu);
    job_.bytes_received += whole.bytes;
    const auto session = job_.parts.roster.sessions().Find(offer->header().session);
    if (!session.ok()) {
      job_.others.Drop(offer->id());  // it was whole when the session ended, so the others kept it
      return session.status();
    }
    outcome.accepted = !job_.parts.lifecycle.initialized();
    outcome.step = job_.parts.step.number();
    if (outcome.accepted) {
      job_.others.TakeParameters(offer->id(), outcome.step);
      mutable_stripe().Start(std::move(first));
      job_.coordinator.OnInitialized(lock.completions());
      job_.RequestPeriodicCheckpoint();
    } else {
      job_.others.Drop(offer->id());
    }
  }
  steps_.Advance();
  return outcome;
}

void LeaderStore::AbandonInitialize(std::unique_ptr<PendingPush> parameters) {
  absl::MutexLock lock(&job_.mu);
  job_.others.Drop(parameters->id());
}

// ---- Pushes ----

PushId LeaderStore::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                              std::function<void()> cancel) {
  CompletingLock lock(&job_.mu);
  PushName name = header.ok() ? PushNameOf(*header) : PushName();
  absl::Status begun = job_.others.Begin(name);
  if (begun.ok() && header.ok()) begun = CheckGroups(*header, *job_.parts.roster.model().optimizer);
  if (!begun.ok()) name = PushName();
  auto admit = [this, name, start = std::move(start)](const absl::StatusOr<Admission>& admission) {
    TellReplicas(name, admission);
    if (!admission.ok()) return start(admission.status());
    if (admission->push == PushId()) return start(PushStart{nullptr, admission->answer});
    start(PushStart{mutable_stripe().Begin(admission->push, admission->header, admission->arrived,
                                           admission->begins_sum),
                    {}});
  };
  if (!begun.ok()) {
    return job_.coordinator.BeginPush(begun, std::move(admit), std::move(cancel),
                                      lock.completions());
  }
  return job_.coordinator.BeginPush(header, std::move(admit), std::move(cancel),
                                    lock.completions());
}

// If the session has ended meanwhile, the replicas hear of that.
void LeaderStore::TellReplicas(const PushName& name, const absl::StatusOr<Admission>& admission) {
  absl::MutexLock lock(&job_.mu);
  if (admission.ok() && admission->push != PushId()) {
    job_.others.Admit(
        {admission->push, name, options_.guards.max_push_norm.has_value(), admission->begins_sum});
  } else {
    job_.others.Pass(name);
  }
}

bool LeaderStore::CancelPush(PushId id) {
  absl::MutexLock lock(&job_.mu);
  return job_.parts.admission.Cancel(id);
}

PushId LeaderStore::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  HaveReport own = mutable_stripe().End(*push, absl::OkStatus(), false);
  if (own.refused.ok()) own.refused = CheckHeader(push->header());
  const PushId id = push->id();
  PushCallback answer = ReportingAttachments(push->header(), std::move(done));
  if (!options_.guards.max_push_norm.has_value() || !own.refused.ok()) {
    Gather(std::move(push), own, std::move(answer));
    return id;
  }
  const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  auto measure = [this, shared, own, answer = std::move(answer)]() mutable {
    own.norm = (*shared)->ParameterNorm();
    Gather(std::move(*shared), own, answer);
  };
  steps_.IsLarge() ? executors().arrivals->Run(measure) : measure();
  return id;
}

// What the header or the summary has for the model.
absl::Status LeaderStore::CheckHeader(const PushHeader& header) const {
  const bool plain = header.options == nullptr && !header.clip_norm.has_value();
  if (header.running_means == nullptr && plain) return absl::OkStatus();
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const OptimizerConfig> optimizer;
  {
    absl::MutexLock lock(&job_.mu);
    layout = job_.parts.roster.model().layout;
    optimizer = job_.parts.roster.model().optimizer;
  }
  const absl::Status options = CheckOptions(*optimizer, options_.schedule, header);
  if (!options.ok() || header.running_means == nullptr) return options;
  return CheckFits(*header.running_means, *layout);
}

// The part of this server is here, or refused.
void LeaderStore::Gather(std::unique_ptr<PendingPush> push, const HaveReport& own,
                         PushCallback done) {
  Arrival arrival = {push->id(), push->header(), std::move(done), {}};
  if (!own.refused.ok()) push = nullptr;
  auto gathered = [this, arrival = std::move(arrival)](const HaveReport& whole) mutable {
    OnGathered(std::move(arrival), whole);
  };
  CompletingLock lock(&job_.mu);
  if (push != nullptr) arrived_.Keep(std::move(push));
  job_.others.FinishOwn(own, std::move(gathered), lock.completions());
}

void LeaderStore::OnGathered(Arrival arrival, const HaveReport& whole) {
  arrival.refused = whole.refused.ok() ? CheckNorm(whole.norm, options_.guards) : whole.refused;
  std::unique_ptr<PendingPush> refused;
  {
    absl::MutexLock lock(&job_.mu);
    if (!arrival.refused.ok()) {
      refused = arrived_.Drop(arrival.push);
      job_.others.Drop(arrival.push);
    }
    job_.bytes_received += whole.bytes;
    job_.coordinator.Queue(std::move(arrival));
  }
  refused = nullptr;  // its memory is free before others are told
  steps_.Advance();
}

bool LeaderStore::CancelGathering(PushId id) {
  std::unique_ptr<PendingPush> own;
  Completions completions;
  {
    absl::MutexLock lock(&job_.mu);
    if (!job_.others.Cancel(id)) return false;
    own = arrived_.Drop(id);
    const bool offer = own->header().sequence == Sequence();
    if (!offer) {
      job_.bytes_received += own->bytes();
      job_.coordinator.AbandonPush(own->header().session, Abandoned::kAborted, &completions);
    }
  }
  own = nullptr;
  completions.Run();
  return true;
}

// Attachments are reported once: a repeated push has another disposition. A push is answered when
// the program has taken its attachments, so its worker waits for a slow program.
PushCallback LeaderStore::ReportingAttachments(const PushHeader& header, PushCallback done) {
  if (header.attachments == nullptr || options_.on_attachments == nullptr) return done;
  std::string worker;
  {
    absl::MutexLock lock(&job_.mu);
    worker = job_.NameOf(header.session);
  }
  return [this, worker, step = header.step, attachments = header.attachments,
          done = std::move(done)](const absl::StatusOr<PushOutcome>& outcome) {
    const bool counted = outcome.ok() && (outcome->disposition == Disposition::kAccepted ||
                                          outcome->disposition == Disposition::kApplied);
    if (!counted) return done(outcome);
    executors().hooks->Run([this, worker, step, attachments, done, outcome] {
      options_.on_attachments(worker, step, *attachments);
      done(outcome);
    });
  };
}

void LeaderStore::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                             PushCallback done) {
  const HaveReport own = {push->id(), why, absl::nullopt, push->bytes()};
  Gather(std::move(push), own, std::move(done));
}

void LeaderStore::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  Completions completions;
  {
    absl::MutexLock lock(&job_.mu);
    job_.others.Drop(push->id());
    job_.bytes_received += push->bytes();
    job_.coordinator.AbandonPush(push->header().session, why, &completions);
  }
  push = nullptr;  // its memory is free before others are let in
  completions.Run();
}

// ---- Pulls ----

PullId LeaderStore::Pull(const PullRequest& request, PullCallback done) {
  CompletingLock lock(&job_.mu);
  const PullName name = {request.session, request.number};
  const absl::Status begun = job_.others.BeginPull(name);
  if (!begun.ok()) {
    lock.completions()->Add([done = std::move(done), begun] { done(begun); });
    return PullId();
  }
  done = [this, name, done = std::move(done)](const absl::StatusOr<PullResult>& result) {
    if (!result.ok()) DropPull(name);
    done(result);
  };
  return job_.coordinator.Pull(request, std::move(done), lock.completions());
}

void LeaderStore::DropPull(const PullName& name) {
  absl::MutexLock lock(&job_.mu);
  job_.others.DropPull(name);
}

bool LeaderStore::CancelPull(PullId id) {
  absl::MutexLock lock(&job_.mu);
  const absl::optional<PullRequest> cancelled = job_.parts.pulls.Cancel(id);
  if (cancelled.has_value()) job_.others.DropPull({cancelled->session, cancelled->number});
  return cancelled.has_value();
}

std::string LeaderStore::NameOf(SessionId session) const {
  absl::MutexLock lock(&job_.mu);
  return job_.NameOf(session);
}

}  // namespace sluice
