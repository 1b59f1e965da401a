#include "server/policy/staleness_policy.h"

#include <algorithm>

namespace sluice {

bool StalenessPolicy::Admits(uint64_t staleness) const {
  if (OncePerStep()) return staleness == 0;
  return !consistency_.max_staleness.has_value() || staleness <= *consistency_.max_staleness;
}

bool StalenessPolicy::OncePerStep() const {
  return consistency_.mode == ConsistencyMode::kSync ||
         consistency_.mode == ConsistencyMode::kBackup;
}

bool StalenessPolicy::BoundsLead() const { return consistency_.mode == ConsistencyMode::kSsp; }

bool StalenessPolicy::IsAhead(const WorkerProgress& worker, const StepProgress& progress) const {
  return BoundsLead() && worker.clock > progress.slowest + consistency_.slack;
}

bool StalenessPolicy::MayProceed(const WorkerProgress& worker, const StepProgress& progress) const {
  if (OncePerStep()) return !worker.contributed;
  return !IsAhead(worker, progress);
}

bool StalenessPolicy::Completes(const StepProgress& progress) const {
  // Without members nobody can complete the step. It is applied empty, because the workers that
  // wait for the next step would otherwise wait forever. In modes without step boundaries they are
  // those that joined before the operator changed the mode.
  const bool deserted = progress.started && progress.members == 0;
  if (deserted && progress.joining > 0) return true;
  const uint32_t contributions = progress.accumulated + (OncePerStep() ? progress.skipped : 0);
  if (contributions == 0) return false;
  // Nobody is left to complete the step, and accepted gradients must not be lost.
  if (deserted) return true;
  const bool overdue =
      progress.overdue && consistency_.on_max_step_wait == StepWaitAction::kProceed;
  if (!OncePerStep()) {
    return overdue || progress.all_wait || progress.accumulated >= consistency_.quorum;
  }
  if (!progress.started) return false;
  if (overdue || progress.missing == 0) return true;
  return consistency_.mode == ConsistencyMode::kBackup &&
         progress.accumulated >= consistency_.quorum;
}

uint32_t StalenessPolicy::Required(const StepProgress& progress) const {
  if (!OncePerStep()) return consistency_.quorum;
  const uint32_t everybody = progress.accumulated + progress.missing;
  return consistency_.mode == ConsistencyMode::kSync ? everybody
                                                     : std::min(consistency_.quorum, everybody);
}

}  // namespace sluice
