#include "common/consistency.h"

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {

absl::Status Consistency::Validate() const {
  if (quorum == 0) return MakeError(Reason::kBadArgument, "quorum is 0, expected at least 1");
  if (mode == ConsistencyMode::kSync && max_staleness.value_or(0) != 0) {
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("max_staleness is ", *max_staleness,
                     " in sync mode, where only 0 makes sense; use async mode, or drop it"));
  }
  return absl::OkStatus();
}

absl::string_view ConsistencyModeName(ConsistencyMode mode) {
  return mode == ConsistencyMode::kSync ? "sync" : "async";
}

absl::Status ParseConsistencyMode(absl::string_view name, ConsistencyMode* mode) {
  for (const ConsistencyMode known : {ConsistencyMode::kSync, ConsistencyMode::kAsync}) {
    if (name != ConsistencyModeName(known)) continue;
    *mode = known;
    return absl::OkStatus();
  }
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("no mode \"", name, "\"; known modes are sync and async"));
}

}  // namespace sluice
