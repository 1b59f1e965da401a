// Pulls: answered from a snapshot, or kept waiting.

#ifndef SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_
#define SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/completions.h"

namespace sluice {

struct PullResult {
  PullHeader header;
  std::shared_ptr<const Snapshot> snapshot;  // null if not modified
};

// Called exactly once, outside all locks, from any thread; not at all if the pull was cancelled.
using PullCallback = std::function<void(absl::StatusOr<PullResult>)>;

using PullId = Number<struct PullTag>;  // of a pull, from 1

// Whether a pull can be answered now.
enum class PullTurn {
  kNow,
  kNotYet,
  kHeldUp,  // by the job's mode alone: its worker waits for others
};

// What all pulls that are answered at a time have in common.
struct PullTerms {
  bool inconsistent = false;  // chunks may be of later steps, unless it is to be whole
  double learning_rate = 0;   // of the latest step
  bool last = false;          // no step will follow
};

// An error ends the pull.
using PullJudge = std::function<absl::StatusOr<PullTurn>(const PullRequest&)>;

// Externally synchronized.
class PullQueue {
 public:
  // Of a server in that life.
  explicit PullQueue(Incarnation incarnation) : incarnation_(incarnation) {}

  PullId Add(const PullRequest& request, PullCallback done);

  bool Waits(PullId id) const { return waiting_.count(id) > 0; }

  // Removes the pull; false if it waits no more.
  bool Cancel(PullId id) { return waiting_.erase(id) > 0; }

  // Answers from `latest`, or ends, those that `judge` says may be, in the order they came, and
  // removes them.
  void Serve(const std::shared_ptr<const Snapshot>& latest, const PullTerms& terms,
             const PullJudge& judge, absl::Time now, Completions* completions);

  size_t size() const { return waiting_.size(); }
  // Whoever is held up has been so only since `now`.
  void RestartHoldUp(absl::Time now);

  // Since when a worker has been held up by the job's mode; none if nobody is.
  absl::optional<absl::Time> held_up_since() const;
  uint64_t bytes_answered() const { return bytes_answered_; }  // payload

 private:
  struct Waiting {
    PullRequest request;
    PullCallback done;
    absl::optional<absl::Time> held_up_since;
  };

  PullResult Answer(const PullRequest& request, const std::shared_ptr<const Snapshot>& latest,
                    const PullTerms& terms);

  const Incarnation incarnation_;
  uint64_t bytes_answered_ = 0;
  PullId last_id_;
  std::map<PullId, Waiting> waiting_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_
