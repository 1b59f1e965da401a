// The answer to a pull, and who attaches the parameters to it.

#ifndef SLUICE_SERVER_REPLICA_PULL_RESULT_H_
#define SLUICE_SERVER_REPLICA_PULL_RESULT_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

using PullId = Number<struct PullTag>;  // from 1; 0 is no pull

struct PullResult {
  PullHeader header;
  std::shared_ptr<const Snapshot> snapshot;  // null if the worker has this step already
};

// Returns the answer to a pull that is released while `latest` is the latest snapshot.
inline PullResult ReleasedPull(PullHeader header, std::shared_ptr<const Snapshot> latest) {
  header.optimizer_steps = latest->optimizer_steps;
  return {header, header.not_modified ? nullptr : std::move(latest)};
}

// Called exactly once, outside all locks, from any thread. Never called if the pull was cancelled.
using PullCallback = std::function<void(absl::StatusOr<PullResult>)>;

// Releases a pull: attaches the parameters of step header.step, which is the latest, to its answer.
// It is called with JobState's mutex, when the coordinator releases the pull.
using PullRelease = std::function<PullResult(const PullRequest&, const PullHeader& header)>;

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_PULL_RESULT_H_
