// The errors that calls get when the server refuses them because it is going down.

#ifndef SLUICE_SERVER_ADMISSION_DRAINING_H_
#define SLUICE_SERVER_ADMISSION_DRAINING_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

inline absl::Status DrainingError() {
  return MakeError(Reason::kDraining, "the server is draining; it takes no more work");
}

// `why` is a sentence: what was seen, and what to do.
inline absl::Status DivergedError(absl::string_view why) {
  return MakeError(Reason::kDiverged, absl::StrCat("the server has ended the job, because ", why));
}

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_DRAINING_H_
