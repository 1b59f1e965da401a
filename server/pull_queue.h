// Pulls: answered from a snapshot, or kept waiting for a step.

#ifndef SLUICE_SERVER_PULL_QUEUE_H_
#define SLUICE_SERVER_PULL_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/exchange.h"
#include "common/ids.h"
#include "server/completions.h"
#include "server/snapshot_store.h"

namespace sluice {

struct PullResult {
  PullHeader header;
  std::shared_ptr<const Snapshot> snapshot;  // null if not modified
};

// Called exactly once, outside all locks, from any thread; not at all if the pull was cancelled.
using PullCallback = std::function<void(absl::StatusOr<PullResult>)>;

using PullId = Number<struct PullTag>;  // of a pull that waits, from 1; 0 is none

// Externally synchronized.
class PullQueue {
 public:
  // Of a server in that life.
  explicit PullQueue(Incarnation incarnation) : incarnation_(incarnation) {}

  // What `latest` says to a pull that it satisfies.
  PullResult Answer(const PullRequest& request, const std::shared_ptr<const Snapshot>& latest);

  // Keeps a pull waiting.
  PullId Add(const PullRequest& request, PullCallback done);

  // Removes the pull; false if it waits no more.
  bool Cancel(PullId id) { return waiting_.erase(id) > 0; }

  // Answers and removes those that `latest` satisfies, in the order they came.
  void Publish(const std::shared_ptr<const Snapshot>& latest, Completions* completions);

  // Ends all of them with an error.
  void FailAll(const absl::Status& status, Completions* completions);

  size_t size() const { return waiting_.size(); }
  uint64_t bytes_answered() const { return bytes_answered_; }  // payload

 private:
  struct Waiting {
    PullRequest request;
    PullCallback done;
  };

  const Incarnation incarnation_;
  uint64_t bytes_answered_ = 0;
  PullId last_id_;
  std::map<PullId, Waiting> waiting_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_PULL_QUEUE_H_
