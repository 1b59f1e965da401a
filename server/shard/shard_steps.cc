// The part of Shard that makes steps.

#include <glog/logging.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

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

// Has all work done that is due, on one thread at a time. A thread that finds another one working
// may return, because that one clears advancing_ only under the lock in which it saw that no work
// is due. Therefore also at most one task of executors_.steps waits or runs.
void Shard::Advance() {
  if (!StartAdvancing()) return;
  NextAction first = DecideNext();
  if (first.idle()) return;
  if (!IsLarge()) return DoAll(std::move(first));
  const auto action = std::make_shared<NextAction>(std::move(first));
  executors_.steps->Run([this, action] { DoAll(std::move(*action)); });
}

// If nothing is due, another thread may begin to advance.
NextAction Shard::DecideNext() {
  CompletingLock lock(&mu_);
  NextAction action = coordinator_.DecideNext(lock.completions());
  if (action.idle()) advancing_ = false;
  return action;
}

void Shard::DoAll(NextAction action) {
  while (!action.idle()) {
    Do(std::move(action));
    action = DecideNext();
  }
}

// The gradient is released at the end, before more work is decided on.
void Shard::Do(NextAction action) {
  if (action.checkpoint) {
    MakeCheckpoint();
  } else if (action.apply) {
    Apply(action);
    stopwatch_.OnPublished();
  } else {
    Accumulate(action);
  }
}

// Whether a step takes longer than another thread takes to wake up. The listener writes a file.
bool Shard::IsLarge() const {
  const std::shared_ptr<const Layout> model = layout();
  return step_listener_ != nullptr || (model != nullptr && model->size() > kPartElements);
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
    stopwatch_.Begin();
    stripe_->Add(Weighed(*action.contribution, action.terms));
    stopwatch_.OnAccumulated();
  }
  CompletingLock lock(&mu_);
  coordinator_.OnAccumulated(*action.contribution, lock.completions());
}

Addend Shard::Weighed(const Contribution& contribution, const StepTerms& terms) {
  const PendingPush& push = *contribution.push;
  return {&push.gradient(), director_->Count(push.header().samples, contribution.staleness, terms)};
}

void Shard::Apply(const NextAction& action) {
  uint64_t checksum = 0;
  stopwatch_.Begin();
  SnapshotPair step = MakeStep(action, journal_ != nullptr ? &checksum : nullptr);
  stopwatch_.OnApplied(action.waited);
  if (journal_ != nullptr) AppendToJournal(action, checksum);
  director_->Clear();
  stripe_->Clear();
  if (step_listener_) step_listener_(step.next->step);
  CompletingLock lock(&mu_);  // step.current may be freed, after that
  if (action.contribution.has_value()) {
    coordinator_.OnAccumulated(*action.contribution, lock.completions());
  }
  holder_.Publish(std::move(step.next));
  coordinator_.OnApplied(director_->norms(), lock.completions());
  if (checkpoints_.IsDue(coordinator_.step())) RequestPeriodicCheckpoint();
}

// `checksum` is null if nobody needs it.
SnapshotPair Shard::MakeStep(const NextAction& action, uint64_t* checksum) {
  SnapshotPair step;
  {
    absl::MutexLock lock(&mu_);
    step = holder_.BeginStep();
  }
  WriteProgress progress;
  if (action.terms.consistency.inconsistent_reads) {
    progress = [&](uint64_t written) {
      absl::MutexLock lock(&mu_);
      holder_.Grow(step.next, written);
    };
  }
  if (action.contribution.has_value()) {
    const Addend last = Weighed(*action.contribution, action.terms);
    // The journal takes the whole sum.
    journal_ != nullptr ? stripe_->Add(last) : stripe_->Keep(last);
  }
  absl::optional<uint64_t> bad;
  {
    const TraceSpan span(trace_, kStepsRow, "apply", step.current->step);
    bad = MakeOn(step.Vectors(progress, checksum), action.terms);
  }
  if (bad.has_value()) LeaveOut(*bad, step.next->step);
  return step;
}

absl::optional<uint64_t> Shard::MakeOn(const StepVectors& vectors, const StepTerms& terms) {
  return director_->Make(terms, [&](const StepOrder& order) {
    return std::vector<StripeReport>{stripe_->Carry(order, vectors)};
  });
}

// The gradients of `step` would have made element `bad` NaN or infinite.
void Shard::LeaveOut(uint64_t bad, Step step) {
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
