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
      holder_(options.snapshots, *parallel_, options.table_memory),
      coordinator_(options, clock, std::move(owner),
                   [this](const PullRequest& request, const PullHeader& header) {
                     mu_.AssertHeld();
                     others_.Release({request.session, request.number}, header);
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
    absl::Status ready = others_.CheckLoaded();
    if (ready.ok()) ready = CheckRecovered(Recovery::kDone);
    if (!ready.ok()) return ready;
    const bool ended = coordinator_.roster().ended_before();
    welcome = coordinator_.Join(request, std::move(listener), lock.completions());
    if (welcome.ok() && director_ == nullptr) {
      OpenModel(coordinator_.roster().layout(), coordinator_.roster().optimizer());
      LOG_IF(INFO, coordinator_.staleness_rules().any())
          << "rules for stale gradients: " << coordinator_.staleness_rules().ToString();
    }
    if (welcome.ok()) others_.Open(welcome->session, request);
    // The end that was saved is not that of this launch.
    if (ended && !coordinator_.roster().ended_before()) RequestPeriodicCheckpoint();
  }
  Tick();
  return welcome;
}

void Shard::OpenModel(const std::shared_ptr<const Layout>& layout,
                      const OptimizerConfig& optimizer) {
  const Stripes stripes(layout->size(), others_.holders());
  director_ = absl::make_unique<StepDirector>(*layout, optimizer, stripes);
  holder_.Open(layout, optimizer, stripes, 0);
  model_ = holder_.executor();
  others_.Send(sluice::OpenModel{layout, optimizer});
}

absl::StatusOr<Step> Shard::Heartbeat(SessionId session,
                                      const absl::optional<StepMeasurement>& measurement) {
  absl::MutexLock lock(&mu_);
  return coordinator_.Heartbeat(session, measurement);
}

void Shard::ConnectionLost(SessionId session) {
  {
    absl::MutexLock lock(&mu_);
    coordinator_.ConnectionLost(session);
  }
  Tick();
}

absl::StatusOr<Step> Shard::Leave(SessionId session, const Farewell& farewell) {
  absl::StatusOr<Step> step;
  {
    CompletingLock lock(&mu_);
    step = coordinator_.Leave(session, farewell, lock.completions());
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

absl::StatusOr<Step> Shard::SetConsistency(const Consistency& consistency,
                                           const absl::optional<Consistency>& expected) {
  return ChangeSettings(
      [&](Coordinator& coordinator) { return coordinator.SetConsistency(consistency, expected); });
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
    const absl::Status ready = CheckRecovered(Recovery::kSaves);
    if (!ready.ok()) return ready;
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

absl::StatusOr<absl::optional<InitializeOutcome>> Shard::JudgeOffer(SessionId session,
                                                                    uint32_t attempt) {
  absl::MutexLock lock(&mu_);
  const auto answer = coordinator_.BeginInitialize(session);
  const bool answered = !answer.ok() || answer->has_value();
  if (answered) others_.Pass({session, Sequence(), attempt});
  return answer;
}

absl::StatusOr<InitializeStart> Shard::BeginInitialize(SessionId session, uint32_t attempt) {
  const auto answer = JudgeOffer(session, attempt);
  if (!answer.ok()) return answer.status();
  InitializeStart start;
  if (answer->has_value()) {
    start.answer = **answer;
    return start;
  }
  absl::MutexLock lock(&mu_);
  const PushName name = {session, Sequence(), attempt};
  const absl::Status begun = others_.Begin(name);
  if (!begun.ok()) return begun;
  const PushId id = coordinator_.NameOffer();
  PushHeader header;
  header.session = session;
  header.attempt = attempt;
  start.parameters = absl::make_unique<PendingPush>(id, header, holder_.layout(),
                                                    std::make_shared<std::atomic<uint64_t>>(0));
  others_.Admit({id, name});
  return start;
}

PushId Shard::FinishInitialize(std::unique_ptr<PendingPush> parameters, InitializeCallback done) {
  const absl::Status complete = parameters->CheckComplete();
  parameters->Seal();
  const uint64_t bytes = parameters->gradient().bytes();
  if (!leads()) {
    done(complete.ok() ? Adopt(std::move(parameters), bytes) : complete);
    return PushId();
  }
  const HaveReport own = {parameters->id(), complete, absl::nullopt, bytes};
  CompletingLock lock(&mu_);
  if (complete.ok()) holder_.Keep(std::move(parameters));
  // Copying takes a time that grows with the model, so no link's thread does it.
  const auto gathered = [this, done = std::move(done)](const HaveReport& whole) {
    executors_.arrivals->Run([this, whole, done] { OnOfferGathered(whole, done); });
  };
  others_.FinishOwn(own, gathered, lock.completions());
  return own.push;
}

void Shard::OnOfferGathered(const HaveReport& whole, const InitializeCallback& done) {
  std::unique_ptr<PendingPush> offer;
  {
    absl::MutexLock lock(&mu_);
    offer = holder_.Drop(whole.push);
  }
  done(whole.refused.ok() ? Adopt(std::move(offer), whole.bytes) : whole.refused);
}

absl::StatusOr<InitializeOutcome> Shard::Adopt(std::unique_ptr<PendingPush> offer, uint64_t bytes) {
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = holder_.MakeFirst(coordinator_.step());
  }
  offer->gradient().CopyTo(0, first->values.span());
  InitializeOutcome outcome;
  {
    CompletingLock lock(&mu_);
    coordinator_.CountReceived(bytes);
    if (leads()) {
      const auto session = coordinator_.roster().sessions().Find(offer->header().session);
      if (!session.ok()) {
        others_.Drop(offer->id());  // it was whole when the session ended, so the others kept it
        return session.status();
      }
    }
    outcome.accepted = !coordinator_.initialized();
    outcome.step = coordinator_.step();
    if (outcome.accepted) {
      model_->StartRows(nullptr, 0, *first).IgnoreError();  // there are none that could be missing
      others_.TakeParameters(offer->id(), outcome.step);
      holder_.Publish(std::move(first));
      coordinator_.OnInitialized(lock.completions());
      RequestPeriodicCheckpoint();
    } else {
      others_.Drop(offer->id());
    }
  }
  Advance();
  return outcome;
}

void Shard::AbandonInitialize(std::unique_ptr<PendingPush> parameters) {
  absl::MutexLock lock(&mu_);
  others_.Drop(parameters->id());
}

// ---- Pulls ----

PullId Shard::Pull(const PullRequest& request, PullCallback done) {
  CompletingLock lock(&mu_);
  if (leads()) {
    const PullName name = {request.session, request.number};
    const absl::Status begun = others_.BeginPull(name);
    if (!begun.ok()) {
      lock.completions()->Add([done = std::move(done), begun] { done(begun); });
      return PullId();
    }
    done = [this, name, done = std::move(done)](const absl::StatusOr<PullResult>& result) {
      if (!result.ok()) DropPull(name);
      done(result);
    };
  }
  return coordinator_.Pull(request, std::move(done), lock.completions());
}

void Shard::DropPull(const PullName& name) {
  absl::MutexLock lock(&mu_);
  others_.DropPull(name);
}

bool Shard::CancelPull(PullId id) {
  absl::MutexLock lock(&mu_);
  const absl::optional<PullRequest> cancelled = coordinator_.CancelPull(id);
  if (cancelled.has_value()) others_.DropPull({cancelled->session, cancelled->number});
  return cancelled.has_value();
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
    others_.Describe(&state);
  }
  state.traffic.wire_bytes_received = wire_bytes_.received();
  state.traffic.wire_bytes_sent = wire_bytes_.sent();
  state.traffic.received_by_transform = wire_bytes_.received_by_transform();
  state.traffic.sent_by_transform = wire_bytes_.sent_by_transform();
  DescribeServers(&state);
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

std::shared_ptr<const Layout> Shard::held_layout() const {
  absl::MutexLock lock(&mu_);
  return holder_.layout();
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
