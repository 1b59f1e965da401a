// Tells a TrainingWatch what happens in a shard, and tells the log what it has seen.

#ifndef SLUICE_SERVER_SHARD_SHARD_WATCH_H_
#define SLUICE_SERVER_SHARD_SHARD_WATCH_H_

#include "absl/status/status.h"
#include "server/aggregation/step_norms.h"
#include "server/shard/training_watch.h"
#include "server/state/completions.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_status.h"

namespace sluice {

struct JobParts;

// Externally synchronized, together with the parts that own it. A method that returns a status
// returns DIVERGED, with the sentence for all workers, if the job ends because training diverges;
// otherwise OK.
class ShardWatch {
 public:
  explicit ShardWatch(JobParts& job);

  // Continues from a checkpoint. Before any other method.
  void Restore(const ShardCheckpoint& checkpoint);

  // A worker has joined, or time has passed.
  absl::Status OnWorkers(Completions* completions);
  // A worker has left, in good order or not.
  void OnLeave(const SessionRecord& worker, Completions* completions);

  // Pushes were judged. Gradients that are not finite may make no step.
  absl::Status OnArrivals(Completions* completions);
  void AddGradient(const PushHeader& push);  // to the step under way
  void LeaveOut();                           // the gradients of that step
  // The step is made: it is the shard's step now.
  absl::Status OnStep(const StepNorms& norms, Completions* completions);

  void Describe(ShardStatus* status) const;
  void Describe(ShardCheckpoint* checkpoint) const;

 private:
  AdviceFacts FactsForAdvice() const;
  uint32_t CountWorkers() const;
  absl::Status Tell(Completions* completions);

  JobParts& job_;
  TrainingWatch watch_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_SHARD_WATCH_H_
