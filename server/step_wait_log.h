// Says who a step waits for, once it has waited long.

#ifndef SLUICE_SERVER_STEP_WAIT_LOG_H_
#define SLUICE_SERVER_STEP_WAIT_LOG_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized.
class StepWaitLog {
 public:
  // A wait is worth a line when it has lasted for `threshold`, and again each time it has doubled.
  explicit StepWaitLog(absl::Duration threshold) : threshold_(threshold) {}

  // The line, if one is due: "step 17 has waited 5.0s for worker-2 (last seen 4.1s ago, 0 bytes of
  // its push here)". To be asked every now and then.
  absl::optional<std::string> Look(const ShardStatus& state);

 private:
  const absl::Duration threshold_;
  absl::optional<absl::Time> since_;  // of the wait that was looked at last
  absl::Duration next_;               // how long it must last for the next line
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STEP_WAIT_LOG_H_
