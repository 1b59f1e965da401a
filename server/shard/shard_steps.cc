// The part of Shard that makes steps.

#include <glog/logging.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

std::string NameOf(const BadNumber& bad, const Layout& layout) {
  if (!bad.row.has_value()) return layout.ElementName(bad.element);
  return absl::StrCat("row ", bad.row->id, " of ", layout.tables()[bad.row->table].name);
}

absl::Status WouldNotBeFinite(const Layout& layout, const BadNumber& bad, Step step,
                              uint32_t gradients) {
  return MakeError(
      Reason::kNotFinite,
      absl::StrCat("step ", step.value(), " would make ", NameOf(bad, layout),
                   ", or the optimizer's state for it, NaN or infinite; it is made without its ",
                   gradients,
                   " gradients; lower the learning rate, or look for the batch that "
                   "caused it"));
}

}  // namespace

// Has all work done that is due, on one thread at a time. A thread that finds another one working
// may return, because that one clears advancing_ only under the lock in which it saw that no work
// is due. Therefore also at most one task of executors_.steps waits or runs.
void Shard::Advance() {
  EndSessions();
  if (!StartAdvancing()) return;
  Work first = DecideNext();
  if (first.action.idle()) return;
  if (!IsLarge()) return DoAll(std::move(first));
  const auto work = std::make_shared<Work>(std::move(first));
  executors_.steps->Run([this, work] { DoAll(std::move(*work)); });
}

// If nothing is due, another thread may begin to advance.
Shard::Work Shard::DecideNext() {
  Work work;
  Completions completions;
  std::vector<std::unique_ptr<PendingPush>> dropped;
  {
    absl::MutexLock lock(&mu_);
    if (others_.stopped()) {
      const absl::Status why = others_.why_stopped();
      coordinator_.FailPushes(why, &completions);
      for (CheckpointCallback& taken : checkpoints_.TakeAll()) {
        completions.Add([taken = std::move(taken), why] { taken(why); });
      }
    } else {
      work.action = coordinator_.DecideNext(&completions);
    }
    AnswerIfEndIsSaved(&completions);
    if (work.action.idle()) advancing_ = false;
    for (const PushId push : work.action.dropped) {
      dropped.push_back(holder_.Drop(push));
      others_.Drop(push);
    }
    if (work.action.contribution.has_value()) {
      work.gradient = holder_.Take(work.action.contribution->push);
    }
  }
  dropped.clear();  // takes long, so without the mutex; and before others are let in
  completions.Run();
  return work;
}

void Shard::DoAll(Work work) {
  while (!work.action.idle()) {
    Do(std::move(work));
    work = DecideNext();
  }
}

// The gradient is released at the end, before more work is decided on.
void Shard::Do(Work work) {
  if (work.action.checkpoint) {
    MakeCheckpoint(work.action);
  } else if (work.action.apply) {
    Apply(work);
    stopwatch_.OnPublished();
  } else {
    Accumulate(work);
  }
}

// Whether a step takes longer than another thread takes to wake up. The listener writes a file.
bool Shard::IsLarge() const {
  if (leads()) return true;
  const std::shared_ptr<const Layout> model = layout();
  return step_listener_ != nullptr || (model != nullptr && model->size() > kPartElements);
}

bool Shard::StartAdvancing() {
  absl::MutexLock lock(&mu_);
  if (advancing_) return false;
  advancing_ = true;
  return true;
}

void Shard::Accumulate(const Work& work) {
  {
    const TraceSpan span(trace_, kStepsRow, "add");
    stopwatch_.Begin();
    if (journal_ == nullptr) model_->SumInto(*BeginStep(work.gradient->id()).next);
    model_->Add(*work.gradient, Weigh(work, /*last=*/false));
    stopwatch_.OnAccumulated();
  }
  CompletingLock lock(&mu_);
  coordinator_.OnAccumulated(*work.action.contribution, lock.completions());
}

// Counts the gradient, and tells the other holders to add it too.
GradientWeight Shard::Weigh(const Work& work, bool last) {
  const Contribution& contribution = *work.action.contribution;
  const GradientWeight weight =
      director_->Count(contribution.header, contribution.staleness, work.action.terms);
  if (leads()) {
    absl::MutexLock lock(&mu_);
    others_.Add(contribution.push, weight, last);
  }
  return weight;
}

void Shard::Apply(const Work& work) {
  uint64_t checksum = 0;
  stopwatch_.Begin();
  SnapshotPair step = MakeStep(work, journal_ != nullptr ? &checksum : nullptr);
  stopwatch_.OnApplied(work.action.waited);
  bool given_up = false;  // then the step is not published, and nobody is told of it
  {
    absl::MutexLock lock(&mu_);
    given_up = others_.stopped();
  }
  if (journal_ != nullptr && !given_up) AppendToJournal(work.action, checksum);
  director_->Clear();
  model_->Clear();
  if (given_up) return;
  if (!saves_) model_->ForgetRemovals(step.next->step);
  if (step_listener_) step_listener_(step.next->step);
  Completions completions;
  Publish(work, std::move(step.next), &completions);
  step.current = nullptr;  // without the mutex, since that may take long; the next pushes need it
  completions.Run();
}

void Shard::Publish(const Work& work, std::shared_ptr<const Snapshot> made,
                    Completions* completions) {
  absl::MutexLock lock(&mu_);
  if (others_.stopped()) return;
  others_.Send(PublishStep());
  if (work.action.contribution.has_value()) {
    coordinator_.OnAccumulated(*work.action.contribution, completions);
  }
  holder_.Publish(std::move(made));
  coordinator_.OnApplied(director_->norms(), completions);
  if (checkpoints_.IsDue(coordinator_.step())) RequestPeriodicCheckpoint();
}

SnapshotPair Shard::BeginStep(PushId first) {
  absl::MutexLock lock(&mu_);
  return holder_.BeginStep(first);
}

// `checksum` is null if nobody needs it.
SnapshotPair Shard::MakeStep(const Work& work, uint64_t* checksum) {
  SnapshotPair step = BeginStep();
  WriteProgress progress;
  if (work.action.terms.consistency.inconsistent_reads) {
    progress = [&](uint64_t written) {
      absl::MutexLock lock(&mu_);
      holder_.Grow(step.next, written);
    };
  }
  if (work.gradient != nullptr) {
    const GradientWeight weight = Weigh(work, /*last=*/true);
    // The journal takes the whole sum.
    journal_ != nullptr ? model_->Add(*work.gradient, weight)
                        : model_->Keep(*work.gradient, weight);
  }
  absl::optional<BadNumber> bad;
  {
    const TraceSpan span(trace_, kStepsRow, "apply", step.current->step);
    bad = MakeOn({step, progress, checksum}, work.action.terms);
  }
  if (bad.has_value()) LeaveOut(*bad, step.next->step);
  return step;
}

absl::optional<BadNumber> Shard::MakeOn(const StepWork& work, const StepTerms& terms) {
  return director_->Make(terms, [&](const StepOrder& order) { return CarryOnAll(order, work); });
}

// Waits for the other servers, at most so long.
std::vector<StripeReport> Shard::CarryOnAll(const StepOrder& order, const StepWork& work,
                                            absl::Duration longest) {
  const auto carry = [&] {
    return model_->Carry(order, work.snapshots, work.progress, work.checksum);
  };
  if (!leads()) return {carry()};
  {
    absl::MutexLock lock(&mu_);
    others_.Order(order, clock_.Now());
  }
  const StripeReport own = carry();
  {
    absl::MutexLock lock(&mu_);
    others_.OnReport(0, own);
  }
  const auto may_go_on = [this] {
    absl::MutexLock lock(&mu_);
    return others_.MayGoOn();
  };
  if (pump_ != nullptr) pump_(may_go_on);
  CompletingLock lock(&mu_);
  if (!mu_.AwaitWithTimeout(absl::Condition(&others_, &HolderGroup::MayGoOn), longest)) {
    others_.Stop(absl::UnavailableError("another server does not answer"), lock.completions());
  }
  return others_.TakeCarried();
}

// The gradients of `step` would have made `bad` NaN or infinite.
void Shard::LeaveOut(const BadNumber& bad, Step step) {
  absl::Status why;
  {
    CompletingLock lock(&mu_);
    why = WouldNotBeFinite(*coordinator_.roster().layout(), bad, step, director_->gradients());
    coordinator_.LeaveOut(why, lock.completions());
  }
  LOG_EVERY_N(WARNING, 100) << why.message();
  director_->Clear();
}

}  // namespace sluice
