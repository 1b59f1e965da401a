#include "server/policy/runtime_settings.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status RuntimeSettings::Propose(const OptimizerConfig& optimizer, double learning_rate) {
  if (!(std::isfinite(learning_rate) && learning_rate >= 0)) {
    return MakeError(Reason::kBadArgument, absl::StrCat("the learning rate is ", learning_rate,
                                                        ", expected a finite number, 0 or more"));
  }
  if (std::holds_alternative<AveragingOptions>(optimizer.options)) {
    return MakeError(Reason::kBadArgument,
                     "the workers of this job apply their own optimizers; set the learning rate "
                     "there, since the server has none");
  }
  next_learning_rate_ = learning_rate;
  return absl::OkStatus();
}

bool RuntimeSettings::Adopt() {
  if (next_learning_rate_.has_value()) learning_rate_ = next_learning_rate_;
  next_learning_rate_.reset();
  if (!next_policy_.has_value()) return false;
  policy_ = *next_policy_;
  next_policy_.reset();
  return true;
}

double RuntimeSettings::LearningRate(const OptimizerConfig& optimizer, Step step) const {
  const double own = LearningRateOf(optimizer.options);
  return Changed(own, own) * schedule_.FactorAt(step);
}

std::vector<double> RuntimeSettings::LearningRates(const OptimizerConfig& optimizer,
                                                   Step step) const {
  std::vector<double> rates = {LearningRate(optimizer, step)};
  const double usual = LearningRateOf(optimizer.options);
  for (const OptimizerGroup& group : optimizer.groups) {
    rates.push_back(Changed(LearningRateOf(group.options), usual) * schedule_.FactorAt(step));
  }
  return rates;
}

// Returns a group's learning rate after the operator's change. `own` is the group's configured
// rate, `usual` that of the parameters in no group.
double RuntimeSettings::Changed(double own, double usual) const {
  if (!learning_rate_.has_value()) return own;
  if (own == usual) return *learning_rate_;
  return usual == 0 ? own : own * (*learning_rate_ / usual);
}

}  // namespace sluice
