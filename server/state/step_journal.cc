#include "server/state/step_journal.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status OtherBitsError(Step step, uint64_t expected, uint64_t found) {
  return absl::FailedPreconditionError(absl::StrCat(
      "step ", step.value(), " comes out with other bits: the server that made it got the ",
      "checksum ", absl::Hex(expected, absl::kZeroPad16), ", this one gets ",
      absl::Hex(found, absl::kZeroPad16), ", so it is another build or another processor"));
}

}  // namespace sluice
