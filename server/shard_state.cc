#include "server/shard_state.h"

namespace sluice {

absl::Duration ShardState::MeanStepTime() const {
  if (step.value() == 0) return absl::ZeroDuration();
  return (*times.last_step - *times.initialized) / static_cast<double>(step.value());
}

}  // namespace sluice
