// The part of Coordinator that decides what to do next, and that takes the results.

#include <algorithm>
#include <utility>

#include "server/shard/coordinator.h"

namespace sluice {

NextAction Coordinator::DecideNext(Completions* completions) {
  if (checkpoint_requested_) {
    NextAction checkpoint;
    checkpoint.checkpoint = true;
    checkpoint_requested_ = false;
    return checkpoint;
  }
  const absl::optional<absl::Time> held_up_since = step_.HeldUpSince();
  if (held_up_since.has_value()) {
    times_.longest_wait = std::max(times_.longest_wait, running_.Now() - *held_up_since);
  }
  AdoptSettings(completions);
  admission_.TakeArrivals(completions);
  GoDown(watch_.OnArrivals(completions), completions);
  NextAction action;
  action.dropped = admission_.TakeDropped();
  action.terms.consistency = settings_.consistency();
  action.terms.learning_rates = settings_.LearningRates(roster_.optimizer(), step_.number());
  action.terms.clip_norm = options_.guards.clip_norm;
  action.terms.gap_aware = rules_.gap_aware;
  action.terms.ordered_momentum = rules_.ordered_momentum;
  if (rules_.ordered_momentum || rules_.divided_momentum) {
    action.terms.workers = std::max(roster_.sessions().census().members(), 1u);
  }
  if (rules_.divided_momentum) {
    action.terms.momentum_divisor =
        std::max(static_cast<double>(action.terms.workers) / settings_.consistency().quorum, 1.0);
  }
  action.contribution = step_.TakeNext();
  if (action.contribution.has_value()) watch_.AddGradient(action.contribution->header);
  action.apply = applying_ =
      initialized() && step_.IsComplete() && !step_.contributions().HasWaiting();
  if (action.apply && options_.on_span != nullptr) action.waited = SinceFirstGradient();
  // A step that is still to be applied must come before the end of training.
  if (action.idle() && BeginsToSaveEnd()) {
    action.checkpoint = action.saves_end = true;
  } else if (action.idle() && end_ != End::kSaving) {
    roster_.CheckFinished(step_.number(), running_.Now(), completions);
  }
  Settle(completions);
  return action;
}

bool Coordinator::AwaitsEnd() const {
  if (end_ == End::kNotSaved || end_ == End::kSaved || draining() || !initialized()) return false;
  return roster_.IsOver(running_.Now()) && roster_.sessions().AnyWorkerLeft();
}

// Whether to save the end of training now. If a worker has joined since, it is not the end.
bool Coordinator::BeginsToSaveEnd() {
  if (end_ == End::kNotSaved) return false;
  if (!roster_.IsOver(running_.Now())) end_ = End::kUnsaved;
  if (end_ != End::kUnsaved || !AwaitsEnd()) return false;
  end_ = End::kSaving;
  end_was_observed_ = roster_.sessions().census().open(SessionRole::kObserver) > 0;
  return true;
}

void Coordinator::OnEndSaved(const absl::StatusOr<Step>& saved) {
  if (end_ != End::kSaving) return;
  if (!saved.ok()) return ForgetEnd();
  end_ = *saved == step_.number() ? End::kSaved : End::kUnsaved;
}

absl::Duration Coordinator::SinceFirstGradient() const {
  const absl::optional<absl::Time> first = step_.contributions().since();
  return first.has_value() ? running_.Now() - *first : absl::ZeroDuration();
}

void Coordinator::AdoptSettings(Completions* completions) {
  if (!step_.contributions().empty() || !settings_.Adopt()) return;
  TakePolicy();
  roster_.sessions().ResetClocks();
  pulls_.NoteAll();
  roster_.Announce({JobEvent::Kind::kPolicyChanged, step_.number(), settings_.consistency()},
                   completions);
}

void Coordinator::LeaveOut(const absl::Status& why, Completions* completions) {
  admission_.LeaveOut(why, completions);
  watch_.LeaveOut();
}

void Coordinator::OnAccumulated(const Contribution& contribution, Completions* completions) {
  step_.contributions().OnAccumulated(contribution.rank);
  const SessionRecord* const worker = roster_.sessions().FindAlive(contribution.rank.second);
  if (worker != nullptr) pulls_.NoteSession(worker->session);
  admission_.Release(contribution.header.session);
  // OnApplied() follows: with a journal, the step then occupies the vector that this one has left.
  if (!applying_) Settle(completions);
}

void Coordinator::OnApplied(const StepNorms& norms, Completions* completions) {
  applying_ = false;
  step_.Finish();
  times_.last_step = running_.Now();
  AnswerPublished(completions);
  GoDown(watch_.OnStep(norms, completions), completions);
  AdoptSettings(completions);
  Settle(completions);
}

void Coordinator::HoldUntilDurable() {
  durable_ = step_.number();
  admission_.HoldUntilDurable(*durable_);
  step_.HoldContributors();
}

void Coordinator::OnDurable(Step step, Completions* completions) {
  durable_ = std::max(durable_.value_or(step), step);
  AnswerPublished(completions);
  Settle(completions);
}

void Coordinator::FailHeldAnswers(const absl::Status& why, Completions* completions) {
  admission_.FailHeldAnswers(draining() ? serving_ : why, completions);
}

void Coordinator::FailPushes(const absl::Status& why, Completions* completions) {
  admission_.FailAll(draining() ? serving_ : why, completions);
  Settle(completions);
}

// Answers pushes whose step is published and, with a journal, durable.
void Coordinator::AnswerPublished(Completions* completions) {
  admission_.AnswerUpTo(std::min(durable_.value_or(step_.number()), step_.number()), completions);
}

}  // namespace sluice
