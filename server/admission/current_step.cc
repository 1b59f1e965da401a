#include "server/admission/current_step.h"

#include <algorithm>
#include <vector>

#include "server/membership/session_queries.h"

namespace sluice {

absl::optional<absl::Time> CurrentStep::HeldUpSince() const {
  return settings_.policy().BoundsLead() ? pulls_.held_up_since() : contributions_.since();
}

StepProgress CurrentStep::Progress() const {
  StepProgress progress = roster_.Progress();
  progress.step = number_;
  progress.accumulated = contributions_.accumulated();
  progress.skipped = contributions_.skipped();
  progress.all_wait = holds_contributors_ && roster_.sessions().census().all_wait();
  progress.overdue = overdue_;
  return progress;
}

bool CurrentStep::WaitsForNobody() const {
  StepProgress progress = Progress();
  progress.overdue = false;
  return settings_.policy().Completes(progress);
}

void CurrentStep::JudgeWait() {
  const absl::optional<absl::Time> since = HeldUpSince();
  const absl::Duration longest = settings_.consistency().max_step_wait;
  overdue_ = roster_.started() && since.has_value() && clock_.Now() - *since >= longest;
  // In other modes no step waits for particular workers.
  const bool for_workers = settings_.policy().BoundsLead() || settings_.policy().OncePerStep();
  if (overdue_ && for_workers) overdue_ = !WaitsForNobody() && !Delayers().empty();
}

std::vector<SessionId> CurrentStep::Delayers() const {
  std::vector<SessionId> delayers;
  const absl::optional<absl::Time> since = HeldUpSince();
  if (!since.has_value()) return delayers;
  const absl::Duration waited = clock_.Now() - *since;
  for (const SessionId holder : Holders(Progress())) {
    const SessionRecord& record = **roster_.sessions().Find(holder);
    const absl::Duration own = waited - record.served.After(*since);
    if (own >= settings_.consistency().max_step_wait) delayers.push_back(holder);
  }
  return delayers;
}

std::vector<SessionId> CurrentStep::Holders(const StepProgress& progress) const {
  absl::optional<uint64_t> slowest;
  if (settings_.policy().BoundsLead()) slowest = progress.slowest;
  return HoldersOf(number_, roster_.sessions().records(), slowest);
}

bool CurrentStep::WouldBeginSum(const Rank& rank) const {
  return settings_.consistency().order == ReductionOrder::kRank &&
         contributions_.WouldBeFirst(rank, roster_.FirstMissing()) &&
         settings_.policy().Required(Progress()) > 1;
}

absl::optional<Contribution> CurrentStep::TakeNext() {
  // A complete step waits for nobody.
  return contributions_.TakeNext(settings_.consistency().order,
                                 IsComplete() ? absl::nullopt : roster_.FirstMissing());
}

void CurrentStep::Restore(Step number) {
  number_ = number;
  roster_.sessions().BeginStep(number_);
}

void CurrentStep::Finish() {
  Restore(number_.Next());
  contributions_.Clear();
  overdue_ = false;
}

StepState CurrentStep::Describe(const InFlightLimit* in_flight) const {
  const bool by_clock = settings_.policy().BoundsLead();
  const StepProgress progress = Progress();
  StepState state;
  state.since = HeldUpSince();
  state.accumulated = progress.accumulated;
  state.skipped = progress.skipped;
  state.required = settings_.policy().Required(progress);
  state.contributed = ContributorsTo(number_, roster_.sessions().records(), StepState::kNames);
  const bool awaits = by_clock ? state.since.has_value() : settings_.policy().OncePerStep();
  if (!awaits && progress.members + progress.joining == 0) {
    state.missing = state.absent = progress.absent;  // nobody else is there
  }
  if (!awaits) {
    FindStalled(roster_.sessions().records(), clock_.Now(), &state);
    return state;
  }
  const std::vector<SessionId> holders = Holders(progress);
  state.missing = by_clock ? holders.size() + progress.absent : progress.missing;
  state.absent = progress.absent;
  for (const SessionId holder : holders) {
    if (state.awaited.size() == StepState::kNames) break;
    const SessionRecord& record = **roster_.sessions().Find(holder);
    const uint64_t lag = number_.value() - std::min(number_, record.last_gradient_step).value();
    state.awaited.push_back(
        {record.worker, clock_.Now() - record.last_seen, lag, in_flight->BytesOf(holder)});
  }
  return state;
}

}  // namespace sluice
