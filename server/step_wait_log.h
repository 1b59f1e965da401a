// Decides when the log names the workers, or the server, that a step waits for. Server asks it
// regularly.

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
  // A line is due when a wait has lasted for `threshold`, and again each time it has doubled.
  explicit StepWaitLog(absl::Duration threshold) : threshold_(threshold) {}

  // The line, if one is due: "step 17 has waited 5.0s for worker-2 (last seen 4.1s ago, 0 bytes of
  // its push here)", or "step 17 has waited 5.0s for server 2 of 3". Also if there are parameters
  // and no worker, but others are to join.
  absl::optional<std::string> Look(const ShardStatus& state);

 private:
  const absl::Duration threshold_;
  absl::optional<absl::Time> since_;     // begin of the latest wait
  absl::optional<absl::Time> deserted_;  // since when nobody is there whom training waits for
  absl::Duration next_;                  // its length when the next line is due
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STEP_WAIT_LOG_H_
