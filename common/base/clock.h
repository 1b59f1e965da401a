// The clock of leases, deadlines and measurements. It is an interface, so that tests can choose the
// time.
//
// It is monotonic: nobody can set it, and it never goes back. So two readings may be subtracted.
// absl::Now() reads the wall clock, which an operator or NTP may change by hours. Use it only for
// times that people see and for the validity of certificates; tests/fences.txt names the files that
// use it.

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
