#include "server/shard/running_clock.h"

#include <algorithm>

namespace sluice {

absl::Time RunningClock::Now() const {
  const absl::Time now = clock_.Now();
  not_run_ += std::max(now - read_ - longest_, absl::ZeroDuration());
  read_ = now;
  return now - not_run_;
}

}  // namespace sluice
