// The part of Coordinator that answers pulls.

#include <memory>
#include <utility>
#include <vector>

#include "server/shard/coordinator.h"

namespace sluice {

// Called after every change.
void Coordinator::Settle(Completions* completions) {
  admission_.Settle(serving_, completions);
  ServePulls(completions);
}

void Coordinator::ServePulls(Completions* completions) {
  const std::vector<SessionId> changed = roster_.sessions().TakeChanged();
  if (pulls_.size() == 0) return;
  const StepProgress progress = step_.Progress();
  for (const SessionId session : changed) pulls_.NoteSession(session);
  pulls_.Note({serving_.ok(), roster_.sessions().ended(), step_.number(), initialized(), ends(),
               settings_.policy().Completes(progress),
               settings_.policy().BoundsLead() ? progress.slowest : 0});
  const PullContext context = {step_.number(),
                               has_model() ? roster_.layout()->size() * sizeof(float) : 0,
                               settings_.consistency().inconsistent_reads, LearningRate(), ends()};
  pulls_.Serve(
      context, [&](const PullRequest& request) { return TurnOf(request, progress); },
      running_.Now(), completions);
}

absl::StatusOr<PullTurn> Coordinator::TurnOf(const PullRequest& request,
                                             const StepProgress& progress) const {
  const auto found = roster_.sessions().Find(request.session);
  const bool observes = initialized() && found.ok() && (*found)->role == SessionRole::kObserver;
  if (draining() && (!observes || suspended())) return serving_;
  if (!found.ok()) return found.status();
  const SessionRecord& record = **found;
  // An observer does not wait for a step that will never be applied, but for one that is complete.
  if (observes && ends()) {
    return settings_.policy().Completes(progress) ? PullTurn::kAwaitsStep : PullTurn::kNow;
  }
  if (!initialized() || request.min_step > step_.number()) return PullTurn::kAwaitsStep;
  if (!request.after.has_value()) return PullTurn::kNow;
  if (record.last_sequence < *request.after) return PullTurn::kAwaitsPush;
  // The server may still read the gradient from the worker's memory, where the worker would write
  // the next one.
  if (step_.contributions().IsAccumulating(record.worker)) return PullTurn::kAwaitsPush;
  // The step that is about to be published may contain the push.
  if (settings_.policy().Completes(progress)) return PullTurn::kAwaitsStep;
  const WorkerProgress worker = {record.contributed == step_.number(), record.clock};
  return settings_.policy().MayProceed(worker, progress) ? PullTurn::kNow : PullTurn::kHeldUp;
}

PullId Coordinator::Pull(const PullRequest& request, PullCallback done, Completions* completions) {
  roster_.sessions().NoteSeen(request.session, running_.Now()).IgnoreError();
  const PullId id = pulls_.Add(request, std::move(done));
  ServePulls(completions);
  return pulls_.Waits(id) ? id : PullId();
}

}  // namespace sluice
