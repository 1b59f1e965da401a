#include "server/policy/staleness_rules.h"

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"

namespace sluice {
namespace {

bool HasPlainMomentum(const OptimizerOptions& options) {
  const auto* const sgd = std::get_if<SgdOptions>(&options);
  return sgd != nullptr && sgd->momentum > 0 && sgd->momentum < 1 && !sgd->nesterov;
}

// Whether momentum can be ordered: SGD's without Nesterov, in every group.
bool HasPlainMomentum(const OptimizerConfig& optimizer) {
  for (const OptimizerGroup& group : optimizer.groups) {
    if (!HasPlainMomentum(group.options)) return false;
  }
  return HasPlainMomentum(optimizer.options);
}

bool IsAdam(const OptimizerOptions& options) {
  return std::holds_alternative<AdamOptions>(options) ||
         std::holds_alternative<AdamWOptions>(options);
}

// Whether the length of a step hardly depends on the size of the gradient.
bool Normalizes(const OptimizerConfig& optimizer) {
  return !std::holds_alternative<SgdOptions>(optimizer.options) && !WorkersStep(optimizer.options);
}

bool AdmitsStale(const Consistency& consistency) {
  return consistency.mode != ConsistencyMode::kSync && consistency.mode != ConsistencyMode::kBackup;
}

absl::Status DoesNotFit(absl::string_view rule, const OptimizerConfig& optimizer,
                        absl::string_view expected) {
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("the job's rule ", rule, " does not fit its optimizer, ",
                                OptimizerTitle(optimizer.options), "; it needs ", expected,
                                "; set the rules for stale gradients to auto"));
}

std::string ReasonFor(const StalenessRules& rules, const Consistency& consistency,
                      const OptimizerConfig& optimizer) {
  const absl::string_view mode = ConsistencyModeName(consistency.mode);
  if (!AdmitsStale(consistency)) return absl::StrCat("no stale gradient counts in ", mode, " mode");
  if (WorkersStep(optimizer.options))
    return "the workers push parameters, which do not become stale";
  const bool automatic = consistency.gap_aware == RuleChoice::kAuto &&
                         consistency.ordered_momentum == RuleChoice::kAuto &&
                         consistency.divided_momentum == RuleChoice::kAuto;
  if (!rules.any() && automatic) {
    return absl::StrCat(OptimizerTitle(optimizer.options),
                        " divides gradients by their size, and is more accurate without rules");
  }
  if (!rules.any()) return "they were turned off";
  if (!automatic) return "they were asked for";
  if (consistency.discount_stale) return "--discount-stale already weighs gradients by their age";
  if (rules.divided_momentum) {
    return absl::StrCat(mode, " mode with ", OptimizerTitle(optimizer.options),
                        " is most accurate with less momentum");
  }
  if (rules.ordered_momentum) {
    return absl::StrCat(mode, " mode with SGD and momentum is most accurate with both rules");
  }
  return absl::StrCat(mode, " mode; ", OptimizerTitle(optimizer.options),
                      " has no momentum that can be ordered");
}

}  // namespace

std::string StalenessRules::ToString() const {
  std::vector<std::string> names;
  if (discount_stale) names.emplace_back("discount-stale");
  if (gap_aware) names.emplace_back("gap-aware");
  if (ordered_momentum) names.emplace_back("ordered-momentum");
  if (divided_momentum) names.emplace_back("divided-momentum");
  return absl::StrCat(names.empty() ? "none" : Listed(names), " (", reason, ")");
}

absl::Status CheckRules(const Consistency& consistency, const OptimizerConfig& optimizer) {
  if (PublishesGradients(optimizer.options) && consistency.mode != ConsistencyMode::kSync) {
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat(
            "the workers of this job step themselves, each with every step's mean gradient, "
            "and mode ",
            ConsistencyModeName(consistency.mode),
            " lets them miss some; use --mode=sync, or an optimizer of the server's"));
  }
  if (consistency.ordered_momentum == RuleChoice::kOn && !HasPlainMomentum(optimizer)) {
    return DoesNotFit("ordered-momentum", optimizer,
                      "SGD with a momentum between 0 and 1, without Nesterov, in every group");
  }
  if (consistency.divided_momentum == RuleChoice::kOn && !IsAdam(optimizer.options)) {
    return DoesNotFit("divided-momentum", optimizer, "adam or adamw");
  }
  constexpr absl::string_view kApplied = "an optimizer that the server applies";
  if (consistency.gap_aware == RuleChoice::kOn && WorkersStep(optimizer.options)) {
    return DoesNotFit("gap-aware", optimizer, kApplied);
  }
  if (consistency.discount_stale && WorkersStep(optimizer.options)) {
    return DoesNotFit("discount-stale", optimizer, kApplied);
  }
  return absl::OkStatus();
}

StalenessRules ChooseRules(const Consistency& consistency, const OptimizerConfig& optimizer) {
  StalenessRules rules;
  const bool slopes = AdmitsStale(consistency) && !WorkersStep(optimizer.options);
  const auto chosen = [](RuleChoice choice, bool automatic) {
    return choice == RuleChoice::kOn || (choice == RuleChoice::kAuto && automatic);
  };
  rules.discount_stale = consistency.discount_stale && slopes;
  rules.gap_aware = slopes && chosen(consistency.gap_aware,
                                     !consistency.discount_stale && !Normalizes(optimizer));
  rules.ordered_momentum =
      slopes && HasPlainMomentum(optimizer) && chosen(consistency.ordered_momentum, true);
  rules.divided_momentum =
      slopes && IsAdam(optimizer.options) && chosen(consistency.divided_momentum, true);
  rules.reason = ReasonFor(rules, consistency, optimizer);
  return rules;
}

}  // namespace sluice
