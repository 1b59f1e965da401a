// The rules of a job: which gradients count towards a step, how they are combined, and when the
// step is complete. The operator chooses them by flags or by Admin.SetPolicy.
//
//   sync     a step takes one gradient of every worker; staleness is 0
//   backup   a step takes the first `quorum` workers; the gradients of the others are stale
//            (Chen et al. 2016, "Revisiting Distributed Synchronous SGD")
//   bounded  a step takes `quorum` gradients; one with staleness > `max_staleness` is dropped
//   ssp      every gradient makes a step; a worker that is more than `slack` pushes ahead of the
//            slowest waits (Ho et al. 2013, "Stale Synchronous Parallel Parameter Server")
//   async    a step takes `quorum` gradients of any age; with inconsistent reads this is
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

// How the gradients of a step are combined into one.
enum class Reduction {
  kMean,          // their sum, divided by the number of gradients that were summed
  kWeightedMean,  // the sum of gradient times samples, divided by the number of all samples
  kSum,           // their sum
};

enum class ReductionOrder {
  kArrival,  // added in the order of arrival
  kRank,     // added in the order of the workers' indices, so that two runs have the same bits
};

// The action when a step has waited longer than `max_step_wait`.
enum class StepWaitAction {
  kWait,     // it continues to wait
  kProceed,  // it is made of the gradients that have arrived
  kEvict,    // the workers that it waits for are evicted; they may join again
};

// Whether a rule for stale gradients is used. kAuto leaves it to the server, which knows the
// optimizer (server/policy/staleness_rules.h).
enum class RuleChoice { kOff, kOn, kAuto };

struct Consistency {
  ConsistencyMode mode = ConsistencyMode::kSync;
  // Backup, bounded, async: gradients per step. In sync and ssp it is 1 and not used.
  uint32_t quorum = 1;
  // Bounded only: a gradient counts if its staleness is at most this.
  absl::optional<uint32_t> max_staleness;
  // Ssp only: how many pushes a worker may be ahead of the slowest.
  uint32_t slack = 0;
  Reduction reduction = Reduction::kMean;
  // kRank in sync only, where every worker contributes.
  ReductionOrder order = ReductionOrder::kArrival;
  // Multiplies a gradient by 1 / (1 + staleness) (Zhang et al. 2016, "Staleness-Aware
  // Async-SGD"). Not in sync and backup, where no stale gradient counts.
  bool discount_stale = false;
  // Divides a gradient by its gap: by how far the parameters have moved since it was computed
  // (Barkai et al. 2019, "Gap Aware Mitigation of Gradient Staleness"). Not in sync and backup. In
  // flags and messages kAuto is the default.
  RuleChoice gap_aware = RuleChoice::kOff;
  // Momentum decays once for as many gradients as there are workers, and a late gradient enters it
  // as if it had come in time (Shi et al. 2024, "Ordered Momentum for Asynchronous SGD"). Not in
  // sync and backup. In flags and messages kAuto is the default.
  RuleChoice ordered_momentum = RuleChoice::kOff;
  // beta1 of Adam and AdamW is divided by the number of workers, because staleness acts like
  // momentum (Mitliagkas et al. 2016, "Asynchrony begets Momentum"). Not in sync and backup. In
  // flags and messages kAuto is the default.
  RuleChoice divided_momentum = RuleChoice::kOff;
  // Async only: a pull may return a mixture of the last step and the one that is being written.
  bool inconsistent_reads = false;
  // The time from a step's first gradient (in ssp: from the first worker that waits) until
  // `on_max_step_wait` happens; at least a microsecond.
  absl::Duration max_step_wait = absl::InfiniteDuration();
  StepWaitAction on_max_step_wait = StepWaitAction::kWait;

  // BAD_ARGUMENT names the field that has a wrong value.
  absl::Status Validate() const;

  bool HasQuorum() const;        // whether the mode uses `quorum`
  bool CountsFreshOnly() const;  // whether no gradient that counts is stale
};

bool operator==(const Consistency& a, const Consistency& b);

// The words of the flags: "sync", "backup", "bounded", "ssp", "async"; "mean", "weighted-mean",
// "sum"; "arrival", "rank"; "wait", "proceed", "evict". For an unknown word, BAD_ARGUMENT lists the
// known ones.
absl::string_view ConsistencyModeName(ConsistencyMode mode);
absl::Status ParseConsistencyMode(absl::string_view name, ConsistencyMode* mode);
absl::string_view ReductionName(Reduction reduction);
absl::Status ParseReduction(absl::string_view name, Reduction* reduction);
absl::string_view ReductionOrderName(ReductionOrder order);
absl::Status ParseReductionOrder(absl::string_view name, ReductionOrder* order);
// Sets all rules for stale gradients.
void SetStalenessRules(RuleChoice all, Consistency* consistency);
// Sets the rules for stale gradients: "auto", "none", or the names of those to be used, separated
// by commas: "gap-aware", "ordered-momentum", "divided-momentum". BAD_ARGUMENT if a word is another
// one.
absl::Status ParseStalenessRules(absl::string_view text, Consistency* consistency);
absl::string_view StepWaitActionName(StepWaitAction action);
absl::Status ParseStepWaitAction(absl::string_view name, StepWaitAction* action);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_CONSISTENCY_H_
