// The time that leases, deadlines and measurements use, as a dependency, so that tests can decide
// it.
//
// It is monotonic: nobody can set it, and it never goes back. So two readings may be subtracted.
// absl::Now() reads the wall clock, which an operator or NTP may set by hours. It is only for what
// people see and for the validity of certificates; tests/fences.txt names the files that use it.

#ifndef SLUICE_COMMON_BASE_CLOCK_H_
#define SLUICE_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace sluice {

// Safe to call from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

// The machine's monotonic clock. It began at the wall clock's time when the process first read it,
// so a reading is also the time of day, unless the wall clock was set since. It is never destroyed.
const Clock& RealClock();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_CLOCK_H_
