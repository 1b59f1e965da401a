#include "server/admission/pull_gate.h"

namespace sluice {

void PullGate::Settle(const std::vector<SessionId>& changed, Completions* completions) {
  if (pulls_.size() == 0) return;
  const StepProgress progress = step_.Progress();
  for (const SessionId session : changed) pulls_.NoteSession(session);
  pulls_.Note({lifecycle_.serving().ok(), roster_.sessions().ended(), step_.number(),
               lifecycle_.initialized(), lifecycle_.ends(), settings_.policy().Completes(progress),
               settings_.policy().BoundsLead() ? progress.slowest : 0});
  const PullContext context = {
      step_.number(),
      roster_.model().layout != nullptr ? roster_.model().layout->size() * sizeof(float) : 0,
      settings_.consistency().inconsistent_reads, settings_.LearningRate(nullptr, step_.number()),
      lifecycle_.ends()};
  pulls_.Serve(
      context, [&](const PullRequest& request) { return TurnOf(request, progress); }, clock_.Now(),
      completions);
}

absl::StatusOr<PullTurn> PullGate::TurnOf(const PullRequest& request,
                                          const StepProgress& progress) const {
  const auto found = roster_.sessions().Find(request.session);
  const bool observes =
      lifecycle_.initialized() && found.ok() && (*found)->role == SessionRole::kObserver;
  if (lifecycle_.draining() && (!observes || lifecycle_.suspended())) return lifecycle_.serving();
  if (!found.ok()) return found.status();
  const SessionRecord& record = **found;
  if (states_.Wants(request.session)) return StateRequests::WantedError();
  // An observer does not wait for a step that will never be applied, but for one that is complete.
  if (observes && lifecycle_.ends()) {
    return settings_.policy().Completes(progress) ? PullTurn::kAwaitsStep : PullTurn::kNow;
  }
  if (!lifecycle_.initialized() || request.min_step > step_.number()) return PullTurn::kAwaitsStep;
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

}  // namespace sluice
