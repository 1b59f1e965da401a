#include "server/policy/runtime_settings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// A group's learning rate after the operator's change to `set`, if there was one. `own` is the
// group's configured rate, `usual` that of the parameters in no group.
double Changed(double own, double usual, absl::optional<double> set) {
  if (!set.has_value()) return own;
  if (own == usual) return *set;
  return usual == 0 || own == 0 ? own : own * (*set / usual);
}

// Propose() has checked the rates of the optimizer, and nobody those of a program in proportion.
double Bounded(double rate) { return std::min(rate, kLargestLearningRate); }

absl::Status CheckLearningRate(absl::string_view whose, double learning_rate) {
  if (IsIn(OptionDomain::kLearningRate, learning_rate)) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(whose, " learning rate is ", learning_rate, ", expected ",
                                Expected(OptionDomain::kLearningRate)));
}

}  // namespace

absl::Status RuntimeSettings::Propose(const OptimizerConfig& optimizer, double learning_rate) {
  const absl::Status sound = CheckLearningRate("the", learning_rate);
  if (!sound.ok()) return sound;
  if (WorkersStep(optimizer.options)) {
    return MakeError(Reason::kBadArgument,
                     "the workers of this job apply their own optimizers; set the learning rate "
                     "there, since the server has none");
  }
  const double usual = LearningRateOf(optimizer.options);
  for (const OptimizerGroup& group : optimizer.groups) {
    const absl::Status in_group = CheckLearningRate(
        "in proportion, a group's", Changed(LearningRateOf(group.options), usual, learning_rate));
    if (!in_group.ok()) return in_group;
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

double RuntimeSettings::BaseLearningRate(const OptimizerConfig& optimizer) const {
  const double own = LearningRateOf(optimizer.options);
  return Changed(own, own, learning_rate_);
}

double RuntimeSettings::LearningRate(const OptimizerConfig& optimizer, const SharedOptions& changed,
                                     Step step) const {
  const double own = LearningRateOf(OptionsOf(optimizer, changed, 0));
  return Bounded(Changed(own, LearningRateOf(optimizer.options), learning_rate_)) *
         schedule_.FactorAt(step);
}

std::vector<double> RuntimeSettings::LearningRates(const OptimizerConfig& optimizer,
                                                   const SharedOptions& changed, Step step) const {
  std::vector<double> rates;
  rates.reserve(RatesOf(optimizer));
  const double usual = LearningRateOf(optimizer.options);
  const auto add = [&](const OptimizerOptions& options) {
    rates.push_back(Bounded(Changed(LearningRateOf(options), usual, learning_rate_)) *
                    schedule_.FactorAt(step));
  };
  for (uint32_t group = 0; group <= optimizer.groups.size(); ++group) {
    add(OptionsOf(optimizer, changed, group));
  }
  for (const TableOptimizer& table : optimizer.tables) add(table.options);
  return rates;
}

}  // namespace sluice
