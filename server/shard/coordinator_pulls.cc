// Who may go on: what a Coordinator answers to pulls.

#include <memory>
#include <utility>

#include "server/admission/draining.h"
#include "server/shard/coordinator.h"

namespace sluice {

// To be called after every change.
void Coordinator::Settle(Completions* completions) {
  admission_.Settle(draining_, completions);
  ServePulls(completions);
}

void Coordinator::ServePulls(Completions* completions) {
  if (pulls_.size() == 0) return;
  const StepProgress progress = step_.Progress();
  const PullTerms terms = {settings_.consistency().inconsistent_reads, LearningRate(),
                           draining_ || roster_.finished()};
  pulls_.Serve(
      snapshots_ == nullptr ? nullptr : snapshots_->latest(), terms,
      [&](const PullRequest& request) { return TurnOf(request, progress); }, clock_.Now(),
      completions);
}

absl::StatusOr<PullTurn> Coordinator::TurnOf(const PullRequest& request,
                                             const StepProgress& progress) const {
  const auto found = roster_.sessions().Find(request.session);
  const bool observes = initialized() && found.ok() && (*found)->role == SessionRole::kObserver;
  if (draining_ && !observes) return DrainingError();
  if (!found.ok()) return found.status();
  const SessionRecord& record = **found;
  // It does not wait for a step that will not come; but one that is complete will.
  if (observes && (draining_ || roster_.finished())) {
    return settings_.policy().Completes(progress) ? PullTurn::kNotYet : PullTurn::kNow;
  }
  if (!initialized() || request.min_step > step_.number()) return PullTurn::kNotYet;
  if (!request.after.has_value()) return PullTurn::kNow;
  if (record.last_sequence < *request.after) return PullTurn::kNotYet;
  // Its gradient may still be read from its own memory, where it will write the next.
  if (step_.contributions().IsAccumulating(record.worker)) return PullTurn::kNotYet;
  // A step is about to be published that may be made of that push.
  if (settings_.policy().Completes(progress)) return PullTurn::kNotYet;
  const WorkerProgress worker = {record.contributed == step_.number(), record.clock};
  return settings_.policy().LetsGoOn(worker, progress) ? PullTurn::kNow : PullTurn::kHeldUp;
}

PullId Coordinator::Pull(const PullRequest& request, PullCallback done, Completions* completions) {
  roster_.Hear(request.session, clock_.Now()).IgnoreError();
  const PullId id = pulls_.Add(request, std::move(done));
  ServePulls(completions);
  return pulls_.Waits(id) ? id : PullId();
}

}  // namespace sluice
