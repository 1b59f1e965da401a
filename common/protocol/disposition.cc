#include "common/protocol/disposition.h"

namespace sluice {

absl::string_view DispositionName(Disposition disposition) {
  switch (disposition) {
    case Disposition::kAccepted:
      return "accepted";
    case Disposition::kApplied:
      return "applied";
    case Disposition::kStaleDropped:
      return "stale";
    case Disposition::kSkipped:
      return "skipped";
    case Disposition::kPartTaken:
      return "part taken";
    case Disposition::kDuplicate:
      break;
  }
  return "duplicate";
}

}  // namespace sluice
