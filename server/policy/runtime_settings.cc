#include "server/policy/runtime_settings.h"

#include <algorithm>
#include <utility>

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

absl::Status CheckForGroups(const OptimizerConfig& optimizer, double learning_rate) {
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
  return absl::OkStatus();
}

}  // namespace

RuntimeSettings::RuntimeSettings(const Consistency& consistency,
                                 const LearningRateSchedule& schedule)
    : policy_(consistency), schedule_(schedule), own_(consistency) {
  Begin(consistency);
}

// The policy stays where it is: others refer to it.
void RuntimeSettings::Begin(const Consistency& consistency) {
  policy_ = StalenessPolicy(consistency);
  if (consistency.mode == ConsistencyMode::kSync) order_in_sync_ = consistency.order;
  if (optimizer_ != nullptr) rules_ = ChooseRules(consistency, *optimizer_);
}

void RuntimeSettings::SetOptimizer(std::shared_ptr<const OptimizerConfig> optimizer) {
  optimizer_ = std::move(optimizer);
  rules_ = ChooseRules(consistency(), *optimizer_);
}

absl::Status RuntimeSettings::Propose(const Consistency& consistency,
                                      const absl::optional<Consistency>& expected) {
  const StalenessPolicy& next = next_policy_.has_value() ? *next_policy_ : policy_;
  if (expected.has_value() && !(next.consistency() == *expected)) {
    return absl::AbortedError(
        "the rules are not those that were expected: somebody else has changed them, and the "
        "change may wait for the end of the step; look at the rules, and try again");
  }
  absl::Status sound = consistency.Validate();
  if (sound.ok() && optimizer_ != nullptr) sound = CheckRules(consistency, *optimizer_);
  if (!sound.ok()) return sound;
  next_policy_.emplace(consistency);
  if (consistency.mode == ConsistencyMode::kSync) order_in_sync_ = consistency.order;
  return absl::OkStatus();
}

absl::Status RuntimeSettings::Propose(double learning_rate) {
  absl::Status sound = CheckLearningRate("the", learning_rate);
  if (sound.ok() && optimizer_ != nullptr) sound = CheckForGroups(*optimizer_, learning_rate);
  if (sound.ok()) next_learning_rate_ = learning_rate;
  return sound;
}

void RuntimeSettings::Restore(const Consistency& consistency, const Consistency& started_with,
                              absl::optional<double> learning_rate) {
  started_with_ = started_with;
  Replay(consistency, learning_rate);
}

void RuntimeSettings::Replay(const Consistency& consistency, absl::optional<double> learning_rate) {
  Begin(own_ == started_with_ ? consistency : own_);
  learning_rate_ = learning_rate;
}

bool RuntimeSettings::Adopt() {
  if (next_learning_rate_.has_value()) learning_rate_ = next_learning_rate_;
  next_learning_rate_.reset();
  if (!next_policy_.has_value()) return false;
  Begin(next_policy_->consistency());
  next_policy_.reset();
  return true;
}

double RuntimeSettings::BaseLearningRate() const {
  if (optimizer_ == nullptr) return 0;
  const double own = LearningRateOf(optimizer_->options);
  return Changed(own, own, learning_rate_);
}

double RuntimeSettings::LearningRate(const SharedOptions& changed, Step step) const {
  if (optimizer_ == nullptr) return 0;
  const double own = LearningRateOf(OptionsOf(*optimizer_, changed, 0));
  return Bounded(Changed(own, LearningRateOf(optimizer_->options), learning_rate_)) *
         schedule_.FactorAt(step);
}

std::vector<double> RuntimeSettings::LearningRates(const SharedOptions& changed, Step step) const {
  const OptimizerConfig& optimizer = *optimizer_;
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

StepTerms RuntimeSettings::TermsFor(uint32_t workers) const {
  StepTerms terms;
  terms.consistency = consistency();
  terms.gap_aware = rules_.gap_aware;
  terms.ordered_momentum = rules_.ordered_momentum;
  if (rules_.ordered_momentum || rules_.divided_momentum) terms.workers = std::max(workers, 1u);
  if (rules_.divided_momentum) {
    terms.momentum_divisor =
        std::max(static_cast<double>(terms.workers) / consistency().quorum, 1.0);
  }
  return terms;
}

}  // namespace sluice
