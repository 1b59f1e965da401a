#include "common/protocol/optimizer_options.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/error.h"

namespace sluice {
namespace {

enum class Domain { kFinite, kNotNegative, kPositive, kBelowOne, kUpToOne, kRate, kCount, kFlag };

// One option, as all checks see it.
struct Option {
  const char* name;
  double value;
  Domain domain;
};

bool IsIn(Domain domain, double value) {
  if (!std::isfinite(value)) return false;
  switch (domain) {
    case Domain::kNotNegative:
      return value >= 0;
    case Domain::kPositive:
      return static_cast<float>(value) > 0;  // as which it will be used
    case Domain::kBelowOne:
      return value >= 0 && value < 1;
    case Domain::kUpToOne:
      return value >= 0 && value <= 1;
    case Domain::kRate:
      return value > 0 && value <= 1;
    case Domain::kCount:
      return value >= 1;
    case Domain::kFinite:
    case Domain::kFlag:
      break;
  }
  return true;
}

const char* Expected(Domain domain) {
  switch (domain) {
    case Domain::kNotNegative:
      return "a finite number that is not negative";
    case Domain::kPositive:
      return "a finite number above 0 that float32 can hold";
    case Domain::kBelowOne:
      return "at least 0, less than 1";
    case Domain::kUpToOne:
      return "at least 0, at most 1";
    case Domain::kRate:
      return "more than 0, at most 1";
    case Domain::kCount:
      return "at least 1";
    case Domain::kFinite:
    case Domain::kFlag:
      break;
  }
  return "a finite number";
}

std::vector<Option> OptionsOf(const SgdOptions& o) {
  return {{"learning_rate", o.learning_rate, Domain::kNotNegative},
          {"momentum", o.momentum, Domain::kNotNegative},
          {"dampening", o.dampening, Domain::kFinite},
          {"weight_decay", o.weight_decay, Domain::kNotNegative},
          {"nesterov", o.nesterov ? 1.0 : 0.0, Domain::kFlag}};
}

std::vector<Option> OptionsOf(const AveragingOptions& o) {
  return {{"moving_rate", o.moving_rate, Domain::kRate},
          {"local_steps", static_cast<double>(o.local_steps), Domain::kCount}};
}

// Those of all that keep moments of the gradient.
template <typename Options>
std::vector<Option> MomentOptionsOf(const Options& o) {
  return {{"learning_rate", o.learning_rate, Domain::kNotNegative},
          {"beta1", o.beta1, Domain::kBelowOne},
          {"beta2", o.beta2, Domain::kBelowOne},
          {"eps", o.eps, Domain::kPositive},
          {"weight_decay", o.weight_decay, Domain::kNotNegative}};
}

template <typename Options>
std::vector<Option> AdamOptionsOf(const Options& o) {
  std::vector<Option> options = MomentOptionsOf(o);
  options.push_back({"amsgrad", o.amsgrad ? 1.0 : 0.0, Domain::kFlag});
  return options;
}

std::vector<Option> OptionsOf(const AdamOptions& o) { return AdamOptionsOf(o); }
std::vector<Option> OptionsOf(const AdamWOptions& o) { return AdamOptionsOf(o); }
std::vector<Option> OptionsOf(const LambOptions& o) { return MomentOptionsOf(o); }

std::vector<Option> OptionsOf(const AdagradOptions& o) {
  return {{"learning_rate", o.learning_rate, Domain::kNotNegative},
          {"lr_decay", o.lr_decay, Domain::kNotNegative},
          {"weight_decay", o.weight_decay, Domain::kNotNegative},
          {"initial_accumulator_value", o.initial_accumulator_value, Domain::kNotNegative},
          {"eps", o.eps, Domain::kPositive}};
}

std::vector<Option> OptionsOf(const RmsPropOptions& o) {
  return {{"learning_rate", o.learning_rate, Domain::kNotNegative},
          {"alpha", o.alpha, Domain::kUpToOne},
          {"eps", o.eps, Domain::kPositive},
          {"weight_decay", o.weight_decay, Domain::kNotNegative},
          {"momentum", o.momentum, Domain::kNotNegative},
          {"centered", o.centered ? 1.0 : 0.0, Domain::kFlag}};
}

template <typename Options>
absl::Status CheckDomains(const char* optimizer, const Options& options) {
  for (const Option& option : OptionsOf(options)) {
    if (IsIn(option.domain, option.value)) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat(optimizer, "'s ", option.name, " is ", option.value,
                                  ", expected ", Expected(option.domain)));
  }
  return absl::OkStatus();
}

std::string Shown(const Option& option, int digits) {
  if (option.domain == Domain::kFlag) return option.value == 0 ? "off" : "on";
  return absl::StrFormat("%.*g", digits, option.value);
}

absl::Status Differs(const Option& job, const Option& worker, absl::string_view where) {
  const bool alike = absl::StrCat(job.value) == absl::StrCat(worker.value);
  const int digits = alike ? 17 : 6;  // to tell them apart
  return MakeError(Reason::kOptimizerMismatch,
                   absl::StrCat("this worker's optimizer has ", job.name, " ",
                                Shown(worker, digits), where, ", the job's has ",
                                Shown(job, digits), "; start every worker with the same options"));
}

template <typename Options>
absl::Status CheckSame(const Options& job, const Options& worker, absl::string_view where) {
  const std::vector<Option> ours = OptionsOf(job);
  const std::vector<Option> theirs = OptionsOf(worker);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].value != theirs[i].value) return Differs(ours[i], theirs[i], where);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SgdOptions::Validate() const {
  const absl::Status domains = CheckDomains("SGD", *this);
  if (!domains.ok()) return domains;
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("Nesterov needs momentum above 0 and dampening 0, found ",
                                  momentum, " and ", dampening));
  }
  return absl::OkStatus();
}

absl::Status AveragingOptions::Validate() const { return CheckDomains("averaging", *this); }
absl::Status AdamOptions::Validate() const { return CheckDomains("Adam", *this); }
absl::Status AdamWOptions::Validate() const { return CheckDomains("AdamW", *this); }
absl::Status AdagradOptions::Validate() const { return CheckDomains("Adagrad", *this); }
absl::Status RmsPropOptions::Validate() const { return CheckDomains("RMSprop", *this); }
absl::Status LambOptions::Validate() const { return CheckDomains("LAMB", *this); }

absl::Status Validate(const OptimizerOptions& options) {
  return std::visit([](const auto& known) { return known.Validate(); }, options);
}

absl::string_view OptimizerName(const OptimizerOptions& options) {
  constexpr absl::string_view kNames[] = {
      "sgd", "averaging", "adam", "adamw", "adagrad", "rmsprop", "lamb"};  // in the variant's order
  static_assert(std::size(kNames) == std::variant_size_v<OptimizerOptions>);
  return kNames[options.index()];
}

double LearningRateOf(const OptimizerOptions& options) {
  return std::visit(
      [](const auto& known) -> double {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, AveragingOptions>) {
          return 0;
        } else {
          return known.learning_rate;
        }
      },
      options);
}

absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker,
                                absl::string_view where) {
  if (job.index() != worker.index()) {
    return MakeError(
        Reason::kOptimizerMismatch,
        absl::StrCat("this worker's optimizer is ", OptimizerName(worker), ", the job's is ",
                     OptimizerName(job), "; start every worker with the same options"));
  }
  return std::visit(
      [&](const auto& ours) {
        return CheckSame(ours, std::get<std::decay_t<decltype(ours)>>(worker), where);
      },
      job);
}

}  // namespace sluice
