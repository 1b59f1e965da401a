// The error that a call gets when a draining server refuses it.

#ifndef SLUICE_SERVER_ADMISSION_DRAINING_H_
#define SLUICE_SERVER_ADMISSION_DRAINING_H_

#include "absl/status/status.h"
#include "common/base/error.h"

namespace sluice {

inline absl::Status DrainingError() {
  return MakeError(Reason::kDraining, "the server is draining; it takes no more work");
}

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_DRAINING_H_
