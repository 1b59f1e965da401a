// The settings that the operator may change while a job runs: the consistency policy and the
// learning rate; and what follows from them and the job's optimizer: the rules for stale gradients,
// and the terms of each step. A change waits for the next step boundary, where the coordinator
// calls Adopt().

#ifndef SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_
#define SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_config.h"
#include "server/policy/staleness_policy.h"
#include "server/policy/staleness_rules.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Externally synchronized.
class RuntimeSettings {
 public:
  // `consistency`: with which the server was started.
  RuntimeSettings(const Consistency& consistency, const LearningRateSchedule& schedule);

  // The job's optimizer is known: it is valid, and stays the same. Before that there are no rules
  // for stale gradients, and LearningRate() and BaseLearningRate() are 0.
  void SetOptimizer(std::shared_ptr<const OptimizerConfig> optimizer);

  // Stores a policy until Adopt(). ABORTED if `expected` is given, and differs from the policy that
  // would hold otherwise. BAD_ARGUMENT if the policy is not valid; BAD_OPTIMIZER if it does not fit
  // the optimizer.
  absl::Status Propose(const Consistency& consistency,
                       const absl::optional<Consistency>& expected = absl::nullopt);
  // Stores a learning rate until Adopt(). BAD_ARGUMENT if it, or what a group's rate becomes with
  // it, is below 0 or above kLargestLearningRate, or if the workers of this job apply their own
  // optimizers.
  absl::Status Propose(double learning_rate);
  // The order of reduction of a new policy of that mode if nobody names one: in sync that of the
  // latest policy in sync, or the order of ranks if there was none. Other modes have one order.
  ReductionOrder OrderFor(ConsistencyMode mode) const {
    return mode == ConsistencyMode::kSync ? order_in_sync_ : ReductionOrder::kArrival;
  }

  // Takes the settings of a checkpoint: what the operator had changed stays in force, unless this
  // server was started with another policy than that one was (`started_with`).
  void Restore(const Consistency& consistency, const Consistency& started_with,
               absl::optional<double> learning_rate);
  // The same for a step that a journal has after that checkpoint.
  void Replay(const Consistency& consistency, absl::optional<double> learning_rate);

  // Makes the stored proposals current, at a step boundary. Returns whether the policy changed.
  bool Adopt();

  const StalenessPolicy& policy() const { return policy_; }
  const Consistency& consistency() const { return policy_.consistency(); }
  const StalenessRules& rules() const { return rules_; }
  const LearningRateSchedule& schedule() const { return schedule_; }

  // The learning rate that the operator set in place of the optimizer's, if any.
  const absl::optional<double>& learning_rate() const { return learning_rate_; }

  // The rate of parameters that are in no group, without the schedule and what the workers'
  // programs have changed. 0 if the workers apply their own optimizers.
  double BaseLearningRate() const;
  // The rate for the step that follows `step`: with the schedule, and with the options that the
  // workers' programs have `changed`.
  double LearningRate(const SharedOptions& changed, Step step) const;
  // Once the optimizer is known: that rate, followed by the rate of each group, and of each table
  // with an optimizer of its own. If the operator changed the rate, these rates change in
  // proportion, changed ones too. A proportion to 0 does not exist: if the optimizer's own rate is
  // 0, groups with the rate 0 get the new rate, and other groups keep theirs.
  std::vector<double> LearningRates(const SharedOptions& changed, Step step) const;
  // The terms of a step in which `workers` take part, but for its rates, changed options and norm.
  StepTerms TermsFor(uint32_t workers) const;

 private:
  void Begin(const Consistency& consistency);

  StalenessPolicy policy_;
  const LearningRateSchedule schedule_;
  std::shared_ptr<const OptimizerConfig> optimizer_;  // null until it is known
  StalenessRules rules_;
  const Consistency own_;     // with which this server was started
  Consistency started_with_;  // and the one whose checkpoint it has
  ReductionOrder order_in_sync_ = ReductionOrder::kRank;
  absl::optional<double> learning_rate_;  // set by the operator
  absl::optional<StalenessPolicy> next_policy_;
  absl::optional<double> next_learning_rate_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_
