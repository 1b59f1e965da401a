#include "server/shard/shard.h"

#include <glog/logging.h>

#include <utility>

#include "absl/memory/memory.h"

namespace sluice {

Shard::Shard(const ShardOptions& options, const Clock& clock, JobListener owner,
             std::unique_ptr<Parallel> parallel, Trace* trace, Executors executors)
    : options_(options),
      clock_(clock),
      parallel_(parallel == nullptr ? absl::make_unique<Serial>() : std::move(parallel)),
      trace_(trace),
      holder_(options.snapshots, *parallel_),
      coordinator_(options, clock, std::move(owner),
                   [this](PullId, const PullHeader& header) {
                     mu_.AssertHeld();
                     return holder_.Release(header);
                   }),
      stopwatch_(options_.on_span, clock),
      executors_(std::move(executors)) {}

// A task may give tasks to other executors, so all of them are there until none is left.
Shard::~Shard() { executors_.Drain(); }

// ---- Membership ----

absl::StatusOr<Welcome> Shard::Join(const JoinRequest& request, JobListener listener) {
  absl::StatusOr<Welcome> welcome;
  {
    CompletingLock lock(&mu_);
    welcome = coordinator_.Join(request, std::move(listener), lock.completions());
    if (welcome.ok() && director_ == nullptr) {
      OpenModel(coordinator_.roster().layout(), coordinator_.roster().optimizer());
      LOG_IF(INFO, coordinator_.staleness_rules().any())
          << "rules for stale gradients: " << coordinator_.staleness_rules().ToString();
    }
  }
  Tick();
  return welcome;
}

void Shard::OpenModel(const std::shared_ptr<const Layout>& layout,
                      const OptimizerConfig& optimizer) {
  const Stripes whole(layout->size(), 1);
  director_ = absl::make_unique<StepDirector>(*layout, optimizer, whole);
  holder_.Open(layout, optimizer, whole, 0);
  stripe_ = holder_.executor();
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
  return ChangeSettings(
      [&](Coordinator& coordinator) { return coordinator.SetConsistency(consistency); });
}

absl::StatusOr<Step> Shard::SetLearningRate(double learning_rate) {
  return ChangeSettings(
      [&](Coordinator& coordinator) { return coordinator.SetLearningRate(learning_rate); });
}

// Returns the first step with the changed settings.
absl::StatusOr<Step> Shard::ChangeSettings(
    absl::FunctionRef<absl::StatusOr<Step>(Coordinator&)> change) {
  absl::StatusOr<Step> from;
  {
    absl::MutexLock lock(&mu_);
    from = change(coordinator_);
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

void Shard::Drain(const absl::Status& why) {
  CompletingLock lock(&mu_);
  coordinator_.GoDown(why, lock.completions());
}

bool Shard::Suspend(const absl::Status& why) {
  CompletingLock lock(&mu_);
  return coordinator_.Suspend(why, lock.completions());
}

// ---- Initial parameters ----

absl::StatusOr<InitializeStart> Shard::BeginInitialize(SessionId session) {
  absl::MutexLock lock(&mu_);
  const auto answer = coordinator_.BeginInitialize(session);
  if (!answer.ok()) return answer.status();
  InitializeStart start;
  if (answer->has_value()) {
    start.answer = **answer;
  } else {
    start.parameters = holder_.MakeOffer();
  }
  return start;
}

absl::StatusOr<InitializeOutcome> Shard::FinishInitialize(
    std::unique_ptr<StagedVector> parameters) {
  const absl::Status complete = parameters->CheckComplete();
  if (!complete.ok()) return complete;
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = holder_.MakeFirst(coordinator_.step());
  }
  parameters->Seal();
  parameters->CopyTo(0, first->values.span());
  InitializeOutcome outcome;
  {
    CompletingLock lock(&mu_);
    coordinator_.CountReceived(parameters->bytes());
    outcome.accepted = !coordinator_.initialized();
    outcome.step = coordinator_.step();
    if (outcome.accepted) {
      holder_.Publish(std::move(first));
      coordinator_.OnInitialized(lock.completions());
      RequestPeriodicCheckpoint();
    }
  }
  Advance();
  return outcome;
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
  return holder_.newest(end);
}

// ---- State ----

ShardStatus Shard::Describe() const {
  ShardStatus state;
  {
    absl::MutexLock lock(&mu_);
    state = coordinator_.Describe();
  }
  state.traffic.wire_bytes_received = wire_bytes_.received();
  state.traffic.wire_bytes_sent = wire_bytes_.sent();
  state.traffic.received_by_transform = wire_bytes_.received_by_transform();
  state.traffic.sent_by_transform = wire_bytes_.sent_by_transform();
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
  return holder_.latest();
}

std::string Shard::NameOf(SessionId session) const {
  absl::MutexLock lock(&mu_);
  const auto record = coordinator_.roster().sessions().Find(session);
  return record.ok() ? (*record)->worker : "";
}

}  // namespace sluice
