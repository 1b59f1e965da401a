// The current time as a dependency, so that tests can decide it.

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

// The system's clock. It is never destroyed.
const Clock& RealClock();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_CLOCK_H_
