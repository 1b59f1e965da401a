// Which gradients count towards a step, how they are combined, and when it is complete: the
// operator's choice, one object for all modes.
//
//   sync     every worker contributes once; staleness is 0
//   backup   the first `quorum` of the workers make the step, the others' gradients are stale
//            (Chen et al. 2016, "Revisiting Distributed Synchronous SGD")
//   bounded  every `quorum` gradients make a step; one of staleness > `max_staleness` is dropped
//   ssp      every gradient makes a step; a worker that has made more than `slack` pushes more than
//            the slowest waits (Ho et al. 2013, "Stale Synchronous Parallel Parameter Server")
//   async    every `quorum` gradients make a step, of whatever age; with inconsistent reads this is
//            AsySG-InCon (Lian et al. 2015)

#ifndef SLUICE_COMMON_PROTOCOL_CONSISTENCY_H_
#define SLUICE_COMMON_PROTOCOL_CONSISTENCY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace sluice {

enum class ConsistencyMode { kSync, kBackup, kBounded, kSsp, kAsync };

// How the gradients of a step become one.
enum class Reduction {
  kMean,          // divided by their number
  kWeightedMean,  // each times its samples, divided by all samples
  kSum,           // undivided
};

enum class ReductionOrder {
  kArrival,  // added as they come
  kRank,     // added in the order of the workers' indices: a run's bits can be reproduced
};

// What becomes of a step that others hold up for longer than `max_step_wait`.
enum class StepWaitAction {
  kWait,     // it waits on
  kProceed,  // it is made of what is there
  kEvict,    // those that hold it up are evicted; they may join again
};

struct Consistency {
  ConsistencyMode mode = ConsistencyMode::kSync;
  // Backup, bounded, async: gradients per step. 1 in sync and ssp, which have no use for it.
  uint32_t quorum = 1;
  // Bounded, and only there: a gradient counts iff the server's step − its step is at most this.
  absl::optional<uint32_t> max_staleness;
  // Ssp: how many pushes a worker may be ahead of the slowest.
  uint32_t slack = 0;
  Reduction reduction = Reduction::kMean;
  // Rank only in sync, where every worker contributes.
  ReductionOrder order = ReductionOrder::kArrival;
  // Multiplies a gradient by 1 / (1 + staleness) (Zhang et al. 2016, "Staleness-Aware
  // Async-SGD"). Not in sync and backup, where no stale gradient counts.
  bool discount_stale = false;
  // Async only: a pull may find some chunks of a step that is being written, others of the last.
  bool inconsistent_reads = false;
  // From a step's first gradient (in ssp: from the first worker that waits) until
  // `on_max_step_wait` is done; at least a microsecond.
  absl::Duration max_step_wait = absl::InfiniteDuration();
  StepWaitAction on_max_step_wait = StepWaitAction::kWait;

  // OK, or BAD_ARGUMENT saying which field is out of its domain.
  absl::Status Validate() const;

  bool HasQuorum() const;  // whether the mode has a use for `quorum`
};

bool operator==(const Consistency& a, const Consistency& b);

// The names of flags: "sync", "backup", "bounded", "ssp", "async"; "mean", "weighted-mean", "sum";
// "arrival", "rank"; "wait", "proceed", "evict". An unknown name gives BAD_ARGUMENT with the list
// of those known.
absl::string_view ConsistencyModeName(ConsistencyMode mode);
absl::Status ParseConsistencyMode(absl::string_view name, ConsistencyMode* mode);
absl::string_view ReductionName(Reduction reduction);
absl::Status ParseReduction(absl::string_view name, Reduction* reduction);
absl::string_view ReductionOrderName(ReductionOrder order);
absl::Status ParseReductionOrder(absl::string_view name, ReductionOrder* order);
absl::string_view StepWaitActionName(StepWaitAction action);
absl::Status ParseStepWaitAction(absl::string_view name, StepWaitAction* action);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_CONSISTENCY_H_
