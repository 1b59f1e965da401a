// A clock that stands still while this process does not run.
//
// Leases and waits end because a worker was silent for too long. While the server itself is stopped
// (SIGSTOP, a debugger, a suspended machine, no CPU), it cannot hear its workers, so that time must
// not count against them. The server reads this clock at each call and at least once per tick. So a
// gap of more than two ticks between two readings means that the process did not run; the clock
// then advances by two ticks only. The first reading after the gap sees that already, whichever
// thread makes it.

#ifndef SLUICE_SERVER_SHARD_RUNNING_CLOCK_H_
#define SLUICE_SERVER_SHARD_RUNNING_CLOCK_H_

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace sluice {

// Externally synchronized; JobParts owns it.
class RunningClock final : public Clock {
 public:
  // Begins at the time of `clock`, which outlives it. `tick` is the longest time between two
  // readings while the process runs; if it is infinite, no gap is noticed.
  RunningClock(const Clock& clock, absl::Duration tick)
      : clock_(clock), longest_(2 * tick), read_(clock.Now()) {}

  absl::Time Now() const override;

 private:
  const Clock& clock_;
  const absl::Duration longest_;
  mutable absl::Time read_;         // `clock_` at the latest reading
  mutable absl::Duration not_run_;  // the sum of all gaps
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_RUNNING_CLOCK_H_
