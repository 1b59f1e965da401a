#include "server/state/shard_status.h"

namespace sluice {

absl::Duration ShardStatus::MeanStepTime() const {
  if (step.value() == 0 || !times.last_step.has_value()) return absl::ZeroDuration();
  return (*times.last_step - *times.initialized) / static_cast<double>(step.value());
}

}  // namespace sluice
