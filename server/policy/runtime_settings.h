// The settings that the operator may change while a job runs: the consistency policy and the
// learning rate. A change waits for the next step boundary, where the coordinator calls Adopt().

#ifndef SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_
#define SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "server/policy/staleness_policy.h"

namespace sluice {

// Externally synchronized.
class RuntimeSettings {
 public:
  RuntimeSettings(const Consistency& consistency, const LearningRateSchedule& schedule)
      : policy_(consistency), schedule_(schedule) {
    NoteOrder(consistency);
  }

  // Stores a policy until Adopt(). The caller has validated it.
  void Propose(const Consistency& consistency) {
    next_policy_.emplace(consistency);
    NoteOrder(consistency);
  }
  // The policy that holds from the next boundary on.
  const Consistency& next() const {
    return next_policy_.has_value() ? next_policy_->consistency() : consistency();
  }
  // The order of reduction of a new policy of that mode if nobody names one: in sync that of the
  // latest policy in sync, or the order of ranks if there was none. Other modes have one order.
  ReductionOrder OrderFor(ConsistencyMode mode) const {
    return mode == ConsistencyMode::kSync ? order_in_sync_ : ReductionOrder::kArrival;
  }
  // Stores a learning rate until Adopt(). BAD_ARGUMENT if it, or what a group's learning rate
  // becomes with it, is below 0 or above kLargestLearningRate, or if the workers of this job apply
  // their own optimizers.
  absl::Status Propose(const OptimizerConfig& optimizer, double learning_rate);

  // Replaces the settings that the server was started with by those of a checkpoint.
  void Restore(const Consistency& consistency, absl::optional<double> learning_rate) {
    policy_ = StalenessPolicy(consistency);
    NoteOrder(consistency);
    learning_rate_ = learning_rate;
  }

  // Makes the stored proposals current, at a step boundary. Returns whether the policy changed.
  bool Adopt();

  const StalenessPolicy& policy() const { return policy_; }
  const Consistency& consistency() const { return policy_.consistency(); }
  const LearningRateSchedule& schedule() const { return schedule_; }

  // The learning rate that the operator set in place of the optimizer's, if any.
  const absl::optional<double>& learning_rate() const { return learning_rate_; }

  // The rate of parameters that are in no group, without the schedule and what the workers'
  // programs have changed. 0 if the workers apply their own optimizers.
  double BaseLearningRate(const OptimizerConfig& optimizer) const;
  // The rate for the step that follows `step`: with the schedule, and with the options that the
  // workers' programs have `changed`.
  double LearningRate(const OptimizerConfig& optimizer, const SharedOptions& changed,
                      Step step) const;
  // That rate, followed by the rate of each group, and of each table with an optimizer of its own.
  // If the operator changed the rate, these rates change in proportion, changed ones too. A
  // proportion to 0 does not exist: if the optimizer's own rate is 0, groups with the rate 0 get
  // the new rate, and other groups keep theirs.
  std::vector<double> LearningRates(const OptimizerConfig& optimizer, const SharedOptions& changed,
                                    Step step) const;

 private:
  void NoteOrder(const Consistency& consistency) {
    if (consistency.mode == ConsistencyMode::kSync) order_in_sync_ = consistency.order;
  }

  StalenessPolicy policy_;
  const LearningRateSchedule schedule_;
  ReductionOrder order_in_sync_ = ReductionOrder::kRank;
  absl::optional<double> learning_rate_;  // set by the operator
  absl::optional<StalenessPolicy> next_policy_;
  absl::optional<double> next_learning_rate_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_
