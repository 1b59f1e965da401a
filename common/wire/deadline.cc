#include "common/wire/deadline.h"

namespace sluice {

gpr_timespec DeadlineAfter(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(duration), GPR_TIMESPAN));
}

}  // namespace sluice
