#include "server/shard/step_loop.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/stripes.h"

namespace sluice {
namespace {

constexpr char kStepsRow[] = "steps";  // the row of the trace

std::string NameOf(const BadNumber& bad, const Layout& layout) {
  if (!bad.row.has_value()) return layout.ElementName(bad.element);
  return absl::StrCat("row ", bad.row->id, " of ", layout.tables()[bad.row->table].name);
}

absl::Status WhyNotMade(const Layout& layout, const BadNumber& bad, Step step, uint32_t gradients) {
  if (!bad.failure.ok()) {
    return MakeError(
        ReasonOf(bad.failure) == Reason::kNotFinite ? Reason::kNotFinite : Reason::kBadOptimizer,
        absl::StrCat("the program's optimizer has not made step ", step.value(), ": ",
                     bad.failure.message(), "; it is made without its ", gradients, " gradients"));
  }
  return MakeError(
      Reason::kNotFinite,
      absl::StrCat("step ", step.value(), " would make ", NameOf(bad, layout),
                   ", or the optimizer's state for it, NaN or infinite; it is made without its ",
                   gradients,
                   " gradients; lower the learning rate, or look for the batch that "
                   "caused it"));
}

}  // namespace

StepLoop::StepLoop(JobState& job, LeaderStore& store)
    : job_(job),
      stripe_(store.mutable_stripe()),
      arrived_(store.arrived()),
      executors_(store.executors()),
      trace_(store.trace()),
      stopwatch_(store.on_span(), job.clock) {}

void StepLoop::SetJournal(StepJournal* journal) {
  journals_ = true;
  stripe_.SetJournal(journal);
}

void StepLoop::Open(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer,
                    std::unique_ptr<ProgramOptimizer> program) {
  job_.mu.AssertHeld();
  const uint32_t servers = job_.others.replicas();
  director_ = std::make_unique<StepDirector>(*layout, optimizer, Stripes(layout->size(), servers));
  stripe_.Open(layout, optimizer, {0, servers}, std::move(program));
  job_.others.Send(sluice::OpenModel{layout, optimizer});
}

// Has all work done that is due, on one thread at a time. A thread that finds another one working
// may return, because that one clears advancing_ only under the lock in which it saw that no work
// is due. Therefore also at most one task of executors_.steps waits or runs.
void StepLoop::Advance() {
  if (!StartAdvancing()) return;
  Work first = DecideNext();
  if (first.action.idle()) return;
  if (!IsLarge()) return DoAll(std::move(first));
  const auto work = std::make_shared<Work>(std::move(first));
  executors_.steps->Run([this, work] { DoAll(std::move(*work)); });
}

// If nothing is due, another thread may begin to advance.
StepLoop::Work StepLoop::DecideNext() {
  Work work;
  Completions completions;
  std::vector<std::unique_ptr<PendingPush>> dropped;
  {
    absl::MutexLock lock(&job_.mu);
    if (job_.others.stopped()) {
      const absl::Status why = job_.others.why_stopped();
      job_.coordinator.FailPushes(why, &completions);
      for (CheckpointCallback& taken : job_.checkpoints.TakeAll()) {
        completions.Add([taken = std::move(taken), why] { taken(why); });
      }
    } else if (job_.checkpoints.any()) {
      work.action.checkpoint = true;
    } else {
      work.action = job_.coordinator.DecideNext(&completions);
    }
    job_.AnswerIfEndIsSaved(&completions);
    if (work.action.idle()) advancing_ = false;
    for (const PushId push : work.action.dropped) {
      dropped.push_back(arrived_.Drop(push));
      job_.others.Drop(push);
    }
    if (work.action.contribution.has_value()) {
      work.gradient = arrived_.Take(work.action.contribution->push);
    }
  }
  dropped.clear();  // takes long, so without the mutex; and before others are let in
  completions.Run();
  return work;
}

void StepLoop::DoAll(Work work) {
  while (!work.action.idle()) {
    if (work.action.checkpoint) {
      MakeCheckpoint(work.action);
    } else if (work.action.apply) {
      Apply(std::move(work));
      stopwatch_.OnPublished();
    } else {
      Accumulate(std::move(work));
    }
    work = DecideNext();
  }
}

// The listener writes a file.
bool StepLoop::IsLarge() const {
  absl::MutexLock lock(&job_.mu);
  const std::shared_ptr<const Layout>& model = job_.parts.roster.model().layout;
  return job_.others.replicas() > 1 || step_listener_ != nullptr ||
         (model != nullptr && model->size() > kPartElements);
}

// Sessions end in many ways, each of which is followed by Advance().
bool StepLoop::StartAdvancing() {
  CompletingLock lock(&job_.mu);
  const SessionTable& sessions = job_.parts.roster.sessions();
  job_.others.EndSessions(
      sessions.ended(), [&](SessionId session) { return sessions.IsAlive(session); },
      lock.completions());
  if (advancing_) return false;
  advancing_ = true;
  return true;
}

// ---- Steps ----

void StepLoop::Accumulate(Work work) {
  {
    const TraceSpan span(trace_, kStepsRow, "add");
    stopwatch_.Begin();
    AddToSum(work, /*last=*/false);
    stopwatch_.OnAccumulated();
  }
  CompletingLock lock(&job_.mu);
  job_.coordinator.OnAccumulated(*work.action.contribution, lock.completions());
}

// Counts the gradient, and has all servers add it.
void StepLoop::AddToSum(Work& work, bool last) {
  const Contribution& contribution = *work.action.contribution;
  const GradientWeight weight =
      director_->Count(contribution.header, contribution.staleness, work.action.terms);
  {
    absl::MutexLock lock(&job_.mu);
    job_.others.Add(contribution.push, weight, last);
  }
  stripe_.Add(std::move(work.gradient), weight, last);
}

void StepLoop::Apply(Work work) {
  stopwatch_.Begin();
  const Step next = stripe_.latest()->step.Next();
  if (work.gradient != nullptr) AddToSum(work, /*last=*/true);
  absl::optional<BadNumber> bad;
  {
    const TraceSpan span(trace_, kStepsRow, "apply", stripe_.latest()->step);
    bad = director_->Make(work.action.terms,
                          [this](const StepOrder& order) { return CarryOnAll(order); });
  }
  if (bad.has_value()) LeaveOut(*bad, next);
  stopwatch_.OnApplied(work.action.waited);
  bool given_up = false;  // then the step is not published, and nobody is told of it
  {
    absl::MutexLock lock(&job_.mu);
    given_up = job_.others.stopped();
  }
  if (journals_ && !given_up) AppendToJournal(work.action);
  director_->Clear();
  if (!given_up) Publish(work.action, next);
  stripe_.EndStep();  // frees the last gradient, after the answers
}

void StepLoop::Publish(const NextAction& action, Step next) {
  if (!keeps_removed_rows_) stripe_.ForgetRemovals(next);
  if (step_listener_) step_listener_(next);
  Completions completions;
  std::shared_ptr<const Snapshot> before;
  {
    absl::MutexLock lock(&job_.mu);
    if (job_.others.stopped()) return;
    job_.others.Send(PublishStep());
    if (action.contribution.has_value()) {
      job_.coordinator.OnAccumulated(*action.contribution, &completions);
    }
    before = stripe_.Publish();
    job_.coordinator.OnApplied(director_->norms(), &completions);
    if (job_.checkpoints.IsDue(job_.parts.step.number())) job_.RequestPeriodicCheckpoint();
  }
  before = nullptr;  // without the mutex, since that may take long; the next pushes need its memory
  completions.Run();
}

// Waits for the other servers, at most so long.
std::vector<StripeReport> StepLoop::CarryOnAll(const StepOrder& order, absl::Duration longest) {
  {
    absl::MutexLock lock(&job_.mu);
    job_.carried.Begin(job_.others.replicas(), job_.clock.Now());
    job_.others.Send(order);
  }
  const StripeReport own = stripe_.Carry(order);
  CompletingLock lock(&job_.mu);
  job_.carried.Take(0, own);
  const auto complete = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu) {
    return job_.carried.complete();
  };
  if (!job_.AwaitOthers(complete, longest)) {
    job_.StopOthers(absl::UnavailableError("another server does not answer"), lock.completions());
  }
  return job_.others.stopped() ? std::vector<StripeReport>() : job_.carried.TakeAll();
}

// The gradients of `step` would have made `bad` NaN or infinite.
void StepLoop::LeaveOut(const BadNumber& bad, Step step) {
  absl::Status why;
  {
    CompletingLock lock(&job_.mu);
    why = WhyNotMade(*job_.parts.roster.model().layout, bad, step, director_->gradients());
    job_.coordinator.LeaveOut(why, lock.completions());
  }
  LOG_EVERY_N(WARNING, 100) << why.message();
  director_->Clear();
}

void StepLoop::AppendToJournal(const NextAction& action) {
  StepRecord record;
  {
    absl::MutexLock lock(&job_.mu);
    record = job_.parts.history.MakeStepRecord(action.terms);
  }
  record.terms = director_->terms();
  record.gradients = director_->gradients();
  record.samples = director_->samples();
  stripe_.Journal(std::move(record));
}

// Copies only the slots, which later steps overwrite. The parameters are immutable.
void StepLoop::MakeCheckpoint(const NextAction& action) {
  const absl::Time began = job_.clock.Now();
  const auto checkpoint = std::make_shared<ShardCheckpoint>();
  std::vector<CheckpointCallback> callbacks;
  {
    absl::MutexLock lock(&job_.mu);
    *checkpoint = job_.parts.history.Checkpoint();
    if (job_.checkpoints.saves() || action.saves_end) {
      checkpoint->elsewhere = job_.others_checkpoints.Take(
          {checkpoint->job_id, checkpoint->incarnations.current(), checkpoint->step});
    }
    callbacks = job_.checkpoints.TakeAll();
    if (action.saves_end) callbacks.push_back(save_end_);
  }
  {
    const TraceSpan span(trace_, kStepsRow, "checkpoint", checkpoint->step);
    static_cast<StripeCheckpoint&>(*checkpoint) = stripe_.Copy();
  }
  checkpoint->pause = job_.clock.Now() - began;
  for (const CheckpointCallback& taken : callbacks) taken(checkpoint);
}

// ---- Work that is not decided step by step ----

// Waits, at most so long, until nobody advances, and keeps others from it.
bool StepLoop::StartAlone(absl::Duration longest) {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu) { return !advancing_; };
  absl::MutexLock lock(&job_.mu);
  if (!job_.mu.AwaitWithTimeout(absl::Condition(&idle), longest)) return false;
  advancing_ = true;
  return true;
}

// With several servers, an operator's call may come meanwhile. What it asks for is done afterwards.
absl::Status StepLoop::Replay(const StepRecord& record, absl::Span<const float> sum,
                              absl::Span<const TableSums> rows) {
  StartAlone(absl::InfiniteDuration());
  const absl::Status replayed = MakeAgain(record, sum, rows);
  DoAll(DecideNext());
  return replayed;
}

absl::Status StepLoop::MakeAgain(const StepRecord& record, absl::Span<const float> sum,
                                 absl::Span<const TableSums> rows) {
  {
    absl::MutexLock lock(&job_.mu);
    job_.others.Send(sluice::ReplayStep{record.step, record.incarnation});
  }
  director_->Load(record.gradients, record.samples);
  stripe_.Load(sum, rows);
  const absl::optional<BadNumber> bad =
      director_->Make(record.terms, [this](const StepOrder& order) { return CarryOnAll(order); });
  const uint64_t checksum = stripe_.checksum();
  director_->Clear();
  stripe_.EndStep();
  std::shared_ptr<const Snapshot> before;  // dropped without the mutex
  absl::MutexLock lock(&job_.mu);
  if (job_.others.stopped()) return job_.others.why_stopped();
  if (bad.has_value() && !bad->failure.ok()) return bad->failure;
  if (checksum != record.checksum) return OtherBitsError(record.step, record.checksum, checksum);
  job_.others.Send(PublishStep());
  before = stripe_.Publish();
  job_.parts.history.Replay(record);
  return absl::OkStatus();
}

absl::optional<uint32_t> StepLoop::Digest(absl::Duration longest) {
  if (stripe_.latest() == nullptr || !StartAlone(longest)) return absl::nullopt;
  const auto digest =
      director_->Digest([&](const StepOrder& order) { return CarryOnAll(order, longest); });
  DoAll(DecideNext());
  return digest;
}

}  // namespace sluice
