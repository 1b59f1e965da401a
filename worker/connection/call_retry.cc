#include "worker/connection/call_retry.h"

#include "common/base/error.h"

namespace sluice {

bool IsLost(const absl::Status& status) {
  const Reason reason = ReasonOf(status);
  return reason == Reason::kUnknownSession ||
         ((absl::IsUnavailable(status) || absl::IsCancelled(status)) && reason == Reason::kNone);
}

bool IsCorrupt(const absl::Status& status) { return ReasonOf(status) == Reason::kCorruptChunk; }

}  // namespace sluice
