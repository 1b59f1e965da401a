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

  // Returns the line if one is due: "step 17 has waited 5 s for worker-2 (last seen 4 s ago)", or
  // "step 17 has waited 5 s for server 2 of 3"; see AwaitedWords(). A job that has parameters, but
  // no worker, and that expects workers to join, counts as a step that waits.
  absl::optional<std::string> Look(const ShardStatus& state);

 private:
  const absl::Duration threshold_;
  absl::optional<absl::Time> since_;     // when the latest wait began
  absl::optional<absl::Time> deserted_;  // since when the job has had no worker
  absl::Duration next_;                  // the next line is due when the wait has this length
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STEP_WAIT_LOG_H_
