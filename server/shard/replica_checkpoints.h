// The stripes of the other servers in checkpoints, for the leader: which servers have still to load
// theirs when a job continues, and which have saved theirs of each checkpoint.

#ifndef SLUICE_SERVER_SHARD_REPLICA_CHECKPOINTS_H_
#define SLUICE_SERVER_SHARD_REPLICA_CHECKPOINTS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "server/replica/replica_commands.h"
#include "server/shard/replica_group.h"
#include "server/state/saved_stripes.h"

namespace sluice {

// The last step that all servers can repeat from their journals.
struct LeastJournaled {
  Step step;
  uint32_t server = 0;  // whose journal ends there
};

// Externally synchronized, with `group`.
class ReplicaCheckpoints {
 public:
  // `group`, to which the commands go, outlives it.
  explicit ReplicaCheckpoints(ReplicaGroup& group) : group_(group) {}

  // Begins to load the stripes of the other servers.
  void Load(const LoadCheckpoint& checkpoint);
  void OnReport(uint32_t replica, const LoadedReport& report);
  // UNAVAILABLE names a server that has not loaded its stripe yet.
  absl::Status CheckLoaded() const;
  bool is_loaded() const { return loading_.empty(); }
  // Of the others, once they have loaded.
  const LeastJournaled& least_journaled() const { return least_journaled_; }

  // Returns what the other servers save; null if there are none.
  std::shared_ptr<SavedStripes> Take(const TakeCheckpoint& checkpoint);
  void OnReport(uint32_t replica, const SavedReport& report);
  // Whether a server still saves a checkpoint.
  bool saves() const { return !saving_.empty(); }
  // Waits for no server's stripe from now on. `why` is an error.
  void Stop(const absl::Status& why);

 private:
  ReplicaGroup& group_;
  std::set<uint32_t> loading_;  // servers that have not loaded their stripes
  LeastJournaled least_journaled_;
  // The checkpoints that not all other servers have reported on, in the order of their commands.
  std::deque<std::shared_ptr<SavedStripes>> saving_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_REPLICA_CHECKPOINTS_H_
