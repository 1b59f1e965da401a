#include "server/shard.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "common/error.h"

namespace sluice {
namespace {

constexpr size_t kNamesInState = 16;

absl::Status DrainingError() {
  return MakeError(Reason::kDraining, "the server is going down; it takes no more work");
}

absl::Status NotInitializedError() {
  return MakeError(Reason::kNotInitialized, "the server has no parameters; initialize them first");
}

}  // namespace

Shard::Shard(const ShardOptions& options, const Clock& clock, JobListener owner)
    : options_(options),
      clock_(clock),
      policy_(options.consistency),
      created_(clock.Now()),
      roster_(options, std::move(owner)),
      gate_(policy_, options.incarnation, roster_.sessions()),
      pulls_(options.incarnation) {}

// ---- Membership ----

absl::StatusOr<Welcome> Shard::Join(const JoinRequest& request, JobListener listener) {
  Welcome welcome;
  {
    absl::MutexLock lock(&mu_);
    if (draining_) return DrainingError();
    // A step boundary is any moment at which nothing has been accumulated. The first step waits for
    // all the workers that were launched, so they take part in it whatever came before them.
    // An observer takes part in no step, so it waits for none.
    const bool boundary = request.role == SessionRole::kObserver || accumulated_ == 0 ||
                          !roster_.started() || !policy_.JoinsAtStepBoundary();
    const auto record =
        roster_.Join(request, std::move(listener), boundary ? step_ : step_.Next(), clock_.Now());
    if (!record.ok()) return record.status();
    if (snapshots_ == nullptr) {
      snapshots_ = absl::make_unique<SnapshotStore>(roster_.layout()->size());
      accumulator_ = absl::make_unique<Accumulator>(roster_.layout()->size());
      optimizer_ = absl::make_unique<SgdOptimizer>(roster_.optimizer(), roster_.layout());
    }
    welcome.session = (*record)->session;
    welcome.job_id = options_.job_id;
    welcome.incarnation = options_.incarnation;
    welcome.step = std::max((*record)->active_from, step_);
    welcome.initialized = initialized();
    welcome.last_sequence = (*record)->last_sequence;
    welcome.consistency = policy_.consistency();
    welcome.index = (*record)->index;
    welcome.workers = options_.expected_workers;
  }
  UpdateRoster();
  return welcome;
}

void Shard::ConnectionLost(SessionId session) {
  {
    absl::MutexLock lock(&mu_);
    roster_.Lose(session, clock_.Now());
  }
  UpdateRoster();
}

absl::StatusOr<Step> Shard::Leave(SessionId session, const Results& results) {
  Step step;
  {
    absl::MutexLock lock(&mu_);
    const absl::Status left = roster_.Leave(session);
    if (!left.ok()) return left;
    results_.insert(results.begin(), results.end());
    step = step_;
  }
  UpdateRoster();
  return step;
}

void Shard::Tick() { UpdateRoster(); }

void Shard::UpdateRoster() {
  {
    absl::MutexLock lock(&mu_);
    roster_.Update(clock_.Now());
  }
  Advance();  // a step that waited for a worker may be complete without it
}

void Shard::Drain() {
  Completions completions;
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
    pulls_.FailAll(DrainingError(), &completions);
    roster_.Announce({JobEvent::Kind::kDraining, step_}, &completions);
  }
  completions.Run();
}

// ---- Initial parameters ----

absl::StatusOr<InitializeStart> Shard::BeginInitialize(SessionId session) {
  absl::MutexLock lock(&mu_);
  if (draining_) return DrainingError();
  const auto record = roster_.sessions().FindWorker(session);
  if (!record.ok()) return record.status();
  InitializeStart start;
  start.answer.step = step_;
  if (!initialized()) start.parameters = absl::make_unique<StagedVector>(roster_.layout());
  return start;
}

absl::StatusOr<InitializeOutcome> Shard::FinishInitialize(
    std::unique_ptr<StagedVector> parameters) {
  const absl::Status complete = parameters->CheckComplete();
  if (!complete.ok()) return complete;
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = snapshots_->Make();
  }
  parameters->CopyTo(first->values.span());
  InitializeOutcome outcome;
  Completions completions;
  {
    absl::MutexLock lock(&mu_);
    bytes_received_ += parameters->bytes();
    outcome.accepted = !initialized();
    outcome.step = step_;
    if (outcome.accepted) {
      first->step = step_;
      snapshots_->Publish(std::move(first));
      times_.initialized = clock_.Now();
      pulls_.Publish(snapshots_->latest(), &completions);
    }
  }
  completions.Run();
  return outcome;
}

// ---- Pushes ----

absl::StatusOr<PushStart> Shard::BeginPush(const absl::StatusOr<PushHeader>& header) {
  absl::MutexLock lock(&mu_);
  absl::StatusOr<PushHeader> acceptable = header;
  if (!initialized()) acceptable = NotInitializedError();
  if (draining_) acceptable = DrainingError();
  const Gate::Verdict verdict = gate_.Open(acceptable, step_, clock_.Now());
  if (!verdict.ok()) return verdict.status();
  PushStart start;
  if (verdict->has_value()) {
    start.answer = **verdict;
  } else {
    start.push =
        absl::make_unique<PendingPush>(PendingPush{*acceptable, StagedVector(roster_.layout())});
  }
  return start;
}

void Shard::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  absl::MutexLock lock(&mu_);
  bytes_received_ += push->gradient.bytes();
  gate_.Abandon(why);
}

void Shard::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  const absl::Status complete = push->gradient.CheckComplete();
  if (!complete.ok()) {
    AbandonPush(std::move(push), Abandoned::kRejected);
    done(complete);
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    bytes_received_ += push->gradient.bytes();
    arrivals_.push_back(absl::make_unique<Arrival>(Arrival{std::move(push), std::move(done)}));
  }
  Advance();
}

// ---- Steps ----

// Does the work that is due, on one thread at a time. A thread that finds another at work leaves
// its own to it: whoever clears advancing_ has seen, under the same lock, that nothing is due.
void Shard::Advance() {
  {
    absl::MutexLock lock(&mu_);
    if (advancing_) return;
    advancing_ = true;
  }
  while (AdvanceOnce()) {
  }
}

// False if nothing was due.
bool Shard::AdvanceOnce() {
  Completions completions;
  std::unique_ptr<Arrival> arrival;
  bool completes = false;
  bool idle = false;
  {
    absl::MutexLock lock(&mu_);
    completes = policy_.Completes(Progress());
    idle = !completes && arrivals_.empty();
    if (idle) {
      advancing_ = false;
      // Only now is the step final, whoever has left.
      roster_.CheckFinished(step_, &completions);
    } else if (!completes) {
      arrival = TakeAdmissible(&completions);
    }
  }
  if (completes) Apply(nullptr, &completions);
  if (arrival != nullptr) Accumulate(std::move(arrival), &completions);
  completions.Run();
  return !idle;
}

// The first push in the queue, or null if it no longer counts.
std::unique_ptr<Shard::Arrival> Shard::TakeAdmissible(Completions* completions) {
  std::unique_ptr<Arrival> arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  const Gate::Verdict verdict = gate_.Admit(arrival->push->header, step_, clock_.Now());
  if (verdict.ok() && !verdict->has_value()) return arrival;
  completions->Add([done = std::move(arrival->done), verdict] {
    if (verdict.ok()) {
      done(**verdict);
    } else {
      done(verdict.status());
    }
  });
  return nullptr;
}

void Shard::Accumulate(std::unique_ptr<Arrival> arrival, Completions* completions) {
  accumulator_->Add(arrival->push->gradient);
  bool completes = false;
  {
    absl::MutexLock lock(&mu_);
    accumulated_ = accumulator_->count();
    SessionRecord* const contributor = gate_.contributor();
    if (contributor != nullptr) contributor->contributed = step_;
    completes = policy_.Completes(Progress());
    if (!completes) CountPush(std::move(arrival), Disposition::kAccepted, step_, completions);
  }
  if (completes) Apply(std::move(arrival), completions);
}

// Makes the next step of what was accumulated; `completing` is the push that completed it, if any.
void Shard::Apply(std::unique_ptr<Arrival> completing, Completions* completions) {
  std::shared_ptr<const Snapshot> current;
  std::shared_ptr<Snapshot> next;
  {
    absl::MutexLock lock(&mu_);
    current = snapshots_->latest();
    next = snapshots_->Make();
  }
  optimizer_->Apply(accumulator_->sum(), static_cast<float>(accumulator_->count()),
                    current->values.span(), next->values.span());
  accumulator_->Clear();
  absl::MutexLock lock(&mu_);
  const Step before = step_;
  step_ = step_.Next();
  accumulated_ = 0;
  times_.last_step = clock_.Now();
  next->step = step_;
  snapshots_->Publish(std::move(next));
  if (completing != nullptr) {
    CountPush(std::move(completing), Disposition::kApplied, before, completions);
  }
  pulls_.Publish(snapshots_->latest(), completions);
}

void Shard::CountPush(std::unique_ptr<Arrival> arrival, Disposition disposition, Step judged_at,
                      Completions* completions) {
  const PushOutcome outcome =
      gate_.Count(arrival->push->header, disposition, judged_at, step_, clock_.Now());
  completions->Add([done = std::move(arrival->done), outcome] { done(outcome); });
}

StepProgress Shard::Progress() const { return roster_.Progress(step_, accumulated_); }

// ---- Pulls ----

PullId Shard::Pull(const PullRequest& request, PullCallback done) {
  absl::StatusOr<PullResult> result;
  {
    absl::MutexLock lock(&mu_);
    const auto record = roster_.sessions().Find(request.session);
    if (draining_ || !record.ok()) {
      result = record.ok() ? DrainingError() : record.status();
    } else if (initialized() && request.min_step <= step_) {
      result = pulls_.Answer(request, snapshots_->latest());
    } else {
      return pulls_.Add(request, std::move(done));
    }
  }
  done(std::move(result));
  return PullId();
}

bool Shard::CancelPull(PullId id) {
  absl::MutexLock lock(&mu_);
  return pulls_.Cancel(id);
}

// ---- State ----

bool Shard::initialized() const { return snapshots_ != nullptr && snapshots_->latest() != nullptr; }

Phase Shard::phase() const {
  if (draining_) return Phase::kDraining;
  if (roster_.finished()) return Phase::kFinished;
  return roster_.started() && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

ShardState Shard::Describe() const {
  absl::MutexLock lock(&mu_);
  ShardState state;
  roster_.Describe(&state);
  state.job_id = options_.job_id;
  state.incarnation = options_.incarnation;
  state.phase = phase();
  state.step = step_;
  state.consistency = policy_.consistency();
  state.accumulated = accumulated_;
  state.required = policy_.Required(Progress());
  if (policy_.OncePerStep()) {
    state.waiting_for = roster_.sessions().MissingNames(step_, kNamesInState);
  }
  state.waiting_pulls = pulls_.size();
  state.books = gate_.books();
  state.traffic = {bytes_received_, pulls_.bytes_answered()};
  state.created = created_;
  state.now = clock_.Now();
  state.times = times_;
  return state;
}

std::vector<SessionRecord> Shard::Sessions() const {
  absl::MutexLock lock(&mu_);
  return roster_.sessions().Records();
}

Results Shard::results() const {
  absl::MutexLock lock(&mu_);
  return results_;
}

std::shared_ptr<const Layout> Shard::layout() const {
  absl::MutexLock lock(&mu_);
  return roster_.layout();
}

std::shared_ptr<const Snapshot> Shard::snapshot() const {
  absl::MutexLock lock(&mu_);
  return snapshots_ == nullptr ? nullptr : snapshots_->latest();
}

}  // namespace sluice
