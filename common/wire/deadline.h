// Deadlines of gRPC's calls and alarms.

#ifndef SLUICE_COMMON_WIRE_DEADLINE_H_
#define SLUICE_COMMON_WIRE_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace sluice {

// The time that is `duration` from now, by the monotonic clock. gRPC also takes a time of the wall
// clock, but then somebody could set that clock between two readings.
gpr_timespec DeadlineAfter(absl::Duration duration);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_DEADLINE_H_
