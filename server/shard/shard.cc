#include "server/shard/shard.h"

#include <glog/logging.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

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

}  // namespace

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

// ---- Pushes ----

PushId Shard::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                        std::function<void()> cancel) {
  CompletingLock lock(&mu_);
  const auto admit = [start = std::move(start),
                      layout = holder_.layout()](const absl::StatusOr<Admission>& admission) {
    if (!admission.ok()) return start(admission.status());
    if (admission->push == PushId()) return start(PushStart{nullptr, admission->answer});
    start(PushStart{absl::make_unique<PendingPush>(admission->push, admission->header, layout,
                                                   admission->arrived),
                    {}});
  };
  return coordinator_.BeginPush(header, admit, std::move(cancel), lock.completions());
}

bool Shard::CancelPush(PushId id) {
  absl::MutexLock lock(&mu_);
  return coordinator_.CancelPush(id);
}

void Shard::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  const absl::Status complete = push->gradient().CheckComplete();
  push->Seal();
  PushCallback answer = ReportingAttachments(push->header(), std::move(done));
  if (!options_.guards.max_push_norm.has_value() || !complete.ok()) {
    return Queue(std::move(push), complete, std::move(answer));
  }
  const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  const auto check_norm = [this, shared, answer = std::move(answer)] {
    const absl::Status fits = CheckNorm(**shared, options_.guards);
    Queue(std::move(*shared), fits, answer);
  };
  IsLarge() ? executors_.arrivals->Run(check_norm) : check_norm();
}

// Attachments are reported once: a repeated push has another disposition. A push is answered when
// the program has taken its attachments, so its worker waits for a slow program.
PushCallback Shard::ReportingAttachments(const PushHeader& header, PushCallback done) {
  if (header.attachments == nullptr || options_.on_attachments == nullptr) return done;
  return
      [this, worker = NameOf(header.session), step = header.step, attachments = header.attachments,
       done = std::move(done)](const absl::StatusOr<PushOutcome>& outcome) {
        const bool counted = outcome.ok() && (outcome->disposition == Disposition::kAccepted ||
                                              outcome->disposition == Disposition::kApplied);
        if (!counted) return done(outcome);
        executors_.hooks->Run([this, worker, step, attachments, done, outcome] {
          options_.on_attachments(worker, step, *attachments);
          done(outcome);
        });
      };
}

void Shard::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                       PushCallback done) {
  Queue(std::move(push), why, std::move(done));
}

void Shard::Queue(std::unique_ptr<PendingPush> push, const absl::Status& refused,
                  PushCallback done) {
  Arrival arrival = {push->id(), push->header(), push->gradient().bytes(), std::move(done),
                     refused};
  if (!refused.ok()) push = nullptr;  // its memory is free before others are told
  {
    absl::MutexLock lock(&mu_);
    if (push != nullptr) holder_.Keep(std::move(push));
    coordinator_.Queue(std::move(arrival));
  }
  Advance();
}

void Shard::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  CompletingLock lock(&mu_);
  coordinator_.AbandonPush(push->header().session, push->gradient().bytes(), why,
                           lock.completions());
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
