#include "server/shard/shard.h"

#include <glog/logging.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

absl::Status CheckNorm(const PendingPush& push, const Guards& guards) {
  if (!guards.max_push_norm.has_value()) return absl::OkStatus();
  const double norm = push.gradient().ParameterNorm();
  if (norm <= *guards.max_push_norm) return absl::OkStatus();
  return MakeError(Reason::kNormTooLarge,
                   absl::StrCat("the gradient's norm is ", norm, ", this server takes at most ",
                                *guards.max_push_norm, "; look for the batch that caused it"));
}

absl::Status WouldNotBeFinite(const Layout& layout, uint64_t element, Step step,
                              uint32_t gradients) {
  return MakeError(
      Reason::kNotFinite,
      absl::StrCat("step ", step.value(), " would make ", layout.ElementName(element),
                   ", or the optimizer's state for it, NaN or infinite; it is made without its ",
                   gradients,
                   " gradients; lower the learning rate, or look for the batch that "
                   "caused it"));
}

}  // namespace

Shard::Shard(const ShardOptions& options, const Clock& clock, JobListener owner,
             std::unique_ptr<Parallel> parallel, Trace* trace)
    : options_(options),
      clock_(clock),
      parallel_(std::move(parallel)),
      trace_(trace),
      coordinator_(options, clock, std::move(owner)) {
  if (parallel_ == nullptr) parallel_ = absl::make_unique<Serial>();
}

// ---- Membership ----

absl::StatusOr<Welcome> Shard::Join(const JoinRequest& request, JobListener listener) {
  absl::StatusOr<Welcome> welcome;
  {
    CompletingLock lock(&mu_);
    welcome = coordinator_.Join(request, std::move(listener), lock.completions());
    if (welcome.ok() && executor_ == nullptr) {
      const Roster& roster = coordinator_.roster();
      executor_ = absl::make_unique<StepExecutor>(*roster.layout(), roster.optimizer(), *parallel_);
    }
  }
  Tick();
  return welcome;
}

absl::StatusOr<Step> Shard::Heartbeat(SessionId session) {
  absl::MutexLock lock(&mu_);
  return coordinator_.Heartbeat(session);
}

void Shard::ConnectionLost(SessionId session) {
  {
    absl::MutexLock lock(&mu_);
    coordinator_.ConnectionLost(session);
  }
  Tick();
}

absl::StatusOr<Step> Shard::Leave(SessionId session, const Results& results) {
  absl::StatusOr<Step> step;
  {
    absl::MutexLock lock(&mu_);
    step = coordinator_.Leave(session, results);
  }
  Tick();
  return step;
}

void Shard::Tick() {
  {
    CompletingLock lock(&mu_);
    coordinator_.Tick(lock.completions());
  }
  Advance();  // without a worker that has gone, the step may be complete
}

// ---- The operator ----

absl::StatusOr<Step> Shard::SetConsistency(const Consistency& consistency) {
  absl::StatusOr<Step> from;
  {
    absl::MutexLock lock(&mu_);
    from = coordinator_.SetConsistency(consistency);
  }
  Advance();
  return from;
}

absl::StatusOr<Step> Shard::SetLearningRate(double learning_rate) {
  absl::StatusOr<Step> from;
  {
    absl::MutexLock lock(&mu_);
    from = coordinator_.SetLearningRate(learning_rate);
  }
  Advance();
  return from;
}

ReductionOrder Shard::OrderFor(ConsistencyMode mode) const {
  absl::MutexLock lock(&mu_);
  return coordinator_.OrderFor(mode);
}

absl::Status Shard::Evict(const std::string& worker) {
  absl::Status evicted;
  {
    CompletingLock lock(&mu_);
    evicted = coordinator_.Evict(worker, lock.completions());
  }
  Advance();
  return evicted;
}

void Shard::Drain() {
  CompletingLock lock(&mu_);
  coordinator_.Drain(lock.completions());
}

// ---- Initial parameters ----

absl::StatusOr<InitializeStart> Shard::BeginInitialize(SessionId session) {
  absl::MutexLock lock(&mu_);
  return coordinator_.BeginInitialize(session);
}

absl::StatusOr<InitializeOutcome> Shard::FinishInitialize(
    std::unique_ptr<StagedVector> parameters) {
  const absl::Status complete = parameters->CheckComplete();
  if (!complete.ok()) return complete;
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = coordinator_.snapshots()->Make();
  }
  parameters->Seal();
  parameters->CopyTo(first->values.span());
  InitializeOutcome outcome;
  {
    CompletingLock lock(&mu_);
    coordinator_.CountReceived(parameters->bytes());
    outcome.accepted = coordinator_.Initialize(std::move(first), lock.completions());
    outcome.step = coordinator_.step();
    if (outcome.accepted) RequestPeriodicCheckpoint();
  }
  Advance();
  return outcome;
}

// ---- Pushes ----

PushId Shard::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                        std::function<void()> cancel) {
  CompletingLock lock(&mu_);
  return coordinator_.BeginPush(header, std::move(start), std::move(cancel), lock.completions());
}

bool Shard::CancelPush(PushId id) {
  absl::MutexLock lock(&mu_);
  return coordinator_.CancelPush(id);
}

void Shard::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  absl::Status sound = push->gradient().CheckComplete();
  push->Seal();
  if (sound.ok()) sound = CheckNorm(*push, options_.guards);
  PushCallback answer = ReportingAttachments(push->header(), std::move(done));
  Queue({std::move(push), std::move(answer), std::move(sound)});
}

// Attachments are reported once: a repeated push has another disposition.
PushCallback Shard::ReportingAttachments(const PushHeader& header, PushCallback done) const {
  if (header.attachments == nullptr || options_.on_attachments == nullptr) return done;
  return
      [this, worker = NameOf(header.session), step = header.step, attachments = header.attachments,
       done = std::move(done)](absl::StatusOr<PushOutcome> outcome) {
        const bool counted = outcome.ok() && (outcome->disposition == Disposition::kAccepted ||
                                              outcome->disposition == Disposition::kApplied);
        if (counted) options_.on_attachments(worker, step, *attachments);
        done(std::move(outcome));
      };
}

void Shard::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                       PushCallback done) {
  Queue({std::move(push), std::move(done), why});
}

void Shard::Queue(Arrival arrival) {
  {
    absl::MutexLock lock(&mu_);
    coordinator_.Queue(std::move(arrival));
  }
  Advance();
}

void Shard::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  CompletingLock lock(&mu_);
  coordinator_.AbandonPush(*push, why, lock.completions());
}

// ---- Steps ----

// Does all work that is due, on one thread at a time. A thread that finds another one working may
// return, because that one clears advancing_ only under the lock in which it saw that no work is
// due.
void Shard::Advance() {
  if (!StartAdvancing()) return;
  for (bool idle = false; !idle;) {
    NextAction action;
    {
      CompletingLock lock(&mu_);
      action = coordinator_.DecideNext(lock.completions());
      idle = action.idle();
      if (idle) advancing_ = false;
    }
    if (action.checkpoint) {
      MakeCheckpoint();
    } else if (action.apply) {
      Apply(action);
    } else if (!idle) {
      Accumulate(action);
    }
  }
}

bool Shard::StartAdvancing() {
  absl::MutexLock lock(&mu_);
  if (advancing_) return false;
  advancing_ = true;
  return true;
}

void Shard::Accumulate(const NextAction& action) {
  {
    const TraceSpan span(trace_, kStepsRow, "add");
    executor_->Add(*action.contribution, action.terms.consistency);
  }
  CompletingLock lock(&mu_);
  coordinator_.OnAccumulated(*action.contribution, lock.completions());
}

void Shard::Apply(const NextAction& action) {
  const Contribution* const last =
      action.contribution.has_value() ? &*action.contribution : nullptr;
  uint64_t checksum = 0;
  std::shared_ptr<Snapshot> next =
      MakeStep(action, last, journal_ != nullptr ? &checksum : nullptr);
  if (journal_ != nullptr) AppendToJournal(action, checksum);
  executor_->Clear();
  if (step_listener_) step_listener_(next->step);
  CompletingLock lock(&mu_);
  if (last != nullptr) coordinator_.OnAccumulated(*last, lock.completions());
  coordinator_.OnApplied(std::move(next), lock.completions());
  const uint64_t steps = coordinator_.step().value();
  if (steps_between_checkpoints_ > 0 && steps % steps_between_checkpoints_ == 0)
    RequestPeriodicCheckpoint();
}

// `checksum` is null if nobody needs it.
std::shared_ptr<Snapshot> Shard::MakeStep(const NextAction& action, const Contribution* last,
                                          uint64_t* checksum) {
  std::shared_ptr<const Snapshot> current;
  std::shared_ptr<Snapshot> next;
  {
    absl::MutexLock lock(&mu_);
    current = coordinator_.snapshots()->latest();
    next = coordinator_.snapshots()->Make();
    next->step = current->step.Next();
  }
  WriteProgress progress;
  if (action.terms.consistency.inconsistent_reads) {
    progress = [&](uint64_t written) {
      absl::MutexLock lock(&mu_);
      coordinator_.snapshots()->Grow(next, written);
    };
  }
  if (journal_ != nullptr && last != nullptr) {  // the journal takes the whole sum
    executor_->Add(*last, action.terms.consistency);
    last = nullptr;
  }
  absl::optional<uint64_t> bad;
  {
    const TraceSpan span(trace_, kStepsRow, "apply", current->step);
    bad = executor_->Make(action.terms, last, current->values.span(), next->values.span(), progress,
                          checksum);
  }
  return bad.has_value() ? LeaveOut(*current, *bad) : next;
}

// The gradients of the step would make element `bad` NaN or infinite. Returns a step without them.
std::shared_ptr<Snapshot> Shard::LeaveOut(const Snapshot& current, uint64_t bad) {
  const uint32_t gradients = executor_->gradients();
  executor_->Clear();
  std::shared_ptr<Snapshot> next;
  absl::Status why;
  {
    CompletingLock lock(&mu_);
    // A new one: pulls with inconsistent reads may hold parts of the step that is given up.
    next = coordinator_.snapshots()->Make();
    next->step = current.step.Next();
    why = WouldNotBeFinite(*coordinator_.roster().layout(), bad, next->step, gradients);
    coordinator_.LeaveOut(why, lock.completions());
  }
  LOG_EVERY_N(WARNING, 100) << why.message();
  CopyTo(AsPiece(current.values.span()), next->values.span());
  return next;
}

// ---- Pulls ----

PullId Shard::Pull(const PullRequest& request, PullCallback done) {
  CompletingLock lock(&mu_);
  return coordinator_.Pull(request, std::move(done), lock.completions());
}

bool Shard::CancelPull(PullId id) {
  absl::MutexLock lock(&mu_);
  return coordinator_.CancelPull(id);
}

std::shared_ptr<const Snapshot> Shard::Newest(uint64_t end) const {
  absl::MutexLock lock(&mu_);
  return coordinator_.snapshots()->newest(end);
}

// ---- State ----

ShardStatus Shard::Describe() const {
  ShardStatus state;
  {
    absl::MutexLock lock(&mu_);
    state = coordinator_.Describe();
  }
  state.traffic.wire_bytes_received = wire_bytes_received_.load(std::memory_order_relaxed);
  state.traffic.wire_bytes_sent = wire_bytes_sent_.load(std::memory_order_relaxed);
  return state;
}

std::vector<SessionRecord> Shard::Sessions() const {
  absl::MutexLock lock(&mu_);
  return coordinator_.roster().sessions().Records();
}

std::vector<SessionRecord> Shard::WorkersAfter(const std::string& name, size_t most) const {
  absl::MutexLock lock(&mu_);
  return coordinator_.roster().sessions().WorkersAfter(name, most);
}

ObserverPlaces Shard::PlacesFor(const std::string& observer) const {
  absl::MutexLock lock(&mu_);
  return coordinator_.roster().sessions().PlacesFor(observer);
}

Results Shard::results() const {
  absl::MutexLock lock(&mu_);
  return coordinator_.results();
}

std::shared_ptr<const Layout> Shard::layout() const {
  absl::MutexLock lock(&mu_);
  return coordinator_.roster().layout();
}

std::shared_ptr<const Snapshot> Shard::snapshot() const {
  absl::MutexLock lock(&mu_);
  const SnapshotStore* const snapshots = coordinator_.snapshots();
  return snapshots == nullptr ? nullptr : snapshots->latest();
}

std::string Shard::NameOf(SessionId session) const {
  absl::MutexLock lock(&mu_);
  const auto record = coordinator_.roster().sessions().Find(session);
  return record.ok() ? (*record)->worker : "";
}

}  // namespace sluice
