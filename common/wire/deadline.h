// Deadlines of gRPC's calls and alarms.

#ifndef SLUICE_COMMON_WIRE_DEADLINE_H_
#define SLUICE_COMMON_WIRE_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace sluice {

// Returns the time that is `duration` from now, by the monotonic clock. gRPC also accepts a time of
// the wall clock, but somebody may set that clock while gRPC waits.
gpr_timespec DeadlineAfter(absl::Duration duration);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_DEADLINE_H_
