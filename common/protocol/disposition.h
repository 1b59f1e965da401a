// What became of a push.

#ifndef SLUICE_COMMON_PROTOCOL_DISPOSITION_H_
#define SLUICE_COMMON_PROTOCOL_DISPOSITION_H_

#include "absl/strings/string_view.h"

namespace sluice {

// The result of a push: whether its gradient counts.
enum class Disposition {
  kAccepted,      // it counts towards the current step
  kApplied,       // it counts, and it completed the step
  kStaleDropped,  // it was too old, and does not count
  kDuplicate,     // this push was answered before; it counted at most once
  kSkipped,       // it was not finite, and the server skips such gradients
  kPartTaken,     // of several servers, this one has its part; the first one answers for the push
};

// "accepted", "applied", "stale", "duplicate", "skipped", "part taken".
absl::string_view DispositionName(Disposition disposition);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_DISPOSITION_H_
