// A length of time, as people read it.

#ifndef SLUICE_COMMON_BASE_TIME_TEXT_H_
#define SLUICE_COMMON_BASE_TIME_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace sluice {

// In whole seconds, with at most two units: "5 s", "3 min 10 s", "2 h", "3 d 4 h". `time` is
// finite, and not negative.
std::string WholeTimeText(absl::Duration time);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_TIME_TEXT_H_
