// The terms of a job that its operator may change while it runs: the policy and the learning rate.
// A change waits for a step boundary.

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
      : policy_(consistency), schedule_(schedule) {}

  // What is to hold from the next step boundary on.
  void Propose(const Consistency& consistency) { next_policy_.emplace(consistency); }
  // As above. BAD_ARGUMENT if it is out of its domain, or the job's optimizer has none here.
  absl::Status Propose(const OptimizerConfig& optimizer, double learning_rate);

  // What holds from the beginning, in place of what the server was started with.
  void Restore(const Consistency& consistency, absl::optional<double> learning_rate) {
    policy_ = StalenessPolicy(consistency);
    learning_rate_ = learning_rate;
  }

  // A step boundary is reached: what was proposed holds. Returns whether the policy is a new one.
  bool Adopt();

  const StalenessPolicy& policy() const { return policy_; }
  const Consistency& consistency() const { return policy_.consistency(); }
  const LearningRateSchedule& schedule() const { return schedule_; }

  // What the operator has put in the place of the optimizer's rate.
  const absl::optional<double>& learning_rate() const { return learning_rate_; }

  // For the step that follows `step`, of parameters in no group; 0 if it is the workers' own.
  double LearningRate(const OptimizerConfig& optimizer, Step step) const;
  // The same, then those of the groups. When the operator changes the rate, theirs go along in
  // proportion; where there is none, because the optimizer's own is 0, they stay.
  std::vector<double> LearningRates(const OptimizerConfig& optimizer, Step step) const;

 private:
  double Changed(double own, double usual) const;

  StalenessPolicy policy_;
  const LearningRateSchedule schedule_;
  absl::optional<double> learning_rate_;  // instead of the optimizer's
  absl::optional<StalenessPolicy> next_policy_;
  absl::optional<double> next_learning_rate_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_RUNTIME_SETTINGS_H_
