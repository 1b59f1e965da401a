// The checkpoints that a shard was asked for: at regular steps, or once.

#ifndef SLUICE_SERVER_SHARD_CHECKPOINT_REQUESTS_H_
#define SLUICE_SERVER_SHARD_CHECKPOINT_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Gets an immutable checkpoint, or the error: NOT_INITIALIZED, UNAVAILABLE while the servers
// restore their state, or that of Shard::StopWaiting(). Called outside all locks. Training waits
// for it.
using CheckpointCallback =
    std::function<void(absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>)>;

// Externally synchronized; JobState owns it.
class CheckpointRequests {
 public:
  // From now on AddPeriodic() requests a checkpoint for `taken`. IsDue() is true every `steps`
  // steps, or never if `steps` is 0.
  void SetPeriodic(uint64_t steps, CheckpointCallback taken) {
    steps_ = steps;
    periodic_ = std::move(taken);
  }
  bool has_periodic() const { return periodic_ != nullptr; }
  bool IsDue(Step step) const { return steps_ > 0 && step.value() % steps_ == 0; }

  // Requests the next checkpoint. There are parameters.
  void Add(CheckpointCallback taken) { next_.push_back(std::move(taken)); }
  void AddPeriodic() { next_.push_back(periodic_); }
  // Requests this server's part of one, which is not saved: the other servers save none.
  void AddCopy(CheckpointCallback taken) { copies_.push_back(std::move(taken)); }

  bool any() const { return saves() || !copies_.empty(); }
  bool saves() const { return !next_.empty(); }
  // Removes and returns the requests for the next checkpoint, and for copies.
  std::vector<CheckpointCallback> TakeAll() {
    std::vector<CheckpointCallback> all = std::exchange(next_, {});
    for (CheckpointCallback& taken : copies_) all.push_back(std::move(taken));
    copies_.clear();
    return all;
  }

 private:
  uint64_t steps_ = 0;
  CheckpointCallback periodic_;
  std::vector<CheckpointCallback> next_;
  std::vector<CheckpointCallback> copies_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_CHECKPOINT_REQUESTS_H_
