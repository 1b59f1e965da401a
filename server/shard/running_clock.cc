#include "server/shard/running_clock.h"

#include <algorithm>

namespace sluice {

absl::Time RunningClock::Now() const {
  const absl::Time now = clock_.Now();
  const absl::Duration most = stands_ ? absl::ZeroDuration() : longest_;
  not_run_ += std::max(now - read_ - most, absl::ZeroDuration());
  read_ = now;
  return now - not_run_;
}

}  // namespace sluice
