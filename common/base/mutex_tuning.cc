#include "common/base/mutex_tuning.h"

#include "absl/synchronization/mutex.h"

namespace sluice {

void TrustLockOrder() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace sluice
