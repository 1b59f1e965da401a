#include "server/staleness_policy.h"

#include <algorithm>

namespace sluice {

bool StalenessPolicy::Admits(uint64_t staleness) const {
  if (consistency_.mode == ConsistencyMode::kSync) return staleness == 0;
  return !consistency_.max_staleness.has_value() || staleness <= *consistency_.max_staleness;
}

bool StalenessPolicy::OncePerStep() const { return consistency_.mode == ConsistencyMode::kSync; }

bool StalenessPolicy::Completes(const StepProgress& progress) const {
  if (progress.accumulated == 0) return false;
  if (consistency_.mode == ConsistencyMode::kAsync) {
    return progress.accumulated >= consistency_.quorum;
  }
  return progress.started && progress.missing == 0;
}

uint32_t StalenessPolicy::Required(const StepProgress& progress) const {
  if (consistency_.mode == ConsistencyMode::kAsync) return consistency_.quorum;
  return progress.started ? progress.accumulated + progress.missing
                          : std::max(consistency_.quorum, progress.members);
}

bool StalenessPolicy::JoinsAtStepBoundary() const {
  return consistency_.mode == ConsistencyMode::kSync;
}

}  // namespace sluice
