#include "common/protocol/consistency.h"

#include <iterator>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

// In the order of the enumerators.
constexpr absl::string_view kModes[] = {"sync", "backup", "bounded", "ssp", "async"};
constexpr absl::string_view kReductions[] = {"mean", "weighted-mean", "sum"};
constexpr absl::string_view kOrders[] = {"arrival", "rank"};
constexpr absl::string_view kActions[] = {"wait", "proceed", "evict"};

template <typename Enum, size_t kCount>
absl::Status Parse(absl::string_view what, absl::string_view name,
                   const absl::string_view (&names)[kCount], Enum* value) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] != name) continue;
    *value = static_cast<Enum>(i);
    return absl::OkStatus();
  }
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(what, " \"", Shown(name), "\" is unknown; expected one of ",
                                absl::StrJoin(std::begin(names), std::end(names), ", "),
                                DidYouMean(name, {std::begin(names), std::end(names)})));
}

absl::Status Bad(absl::string_view found, absl::string_view what_to_do) {
  return MakeError(Reason::kBadArgument, absl::StrCat(found, "; ", what_to_do));
}

}  // namespace

bool Consistency::HasQuorum() const {
  return mode != ConsistencyMode::kSync && mode != ConsistencyMode::kSsp;
}

bool Consistency::CountsFreshOnly() const {
  return mode == ConsistencyMode::kSync || mode == ConsistencyMode::kBackup;
}

absl::Status Consistency::Validate() const {
  const absl::string_view name = ConsistencyModeName(mode);
  if (quorum == 0) return Bad("quorum is 0", "expected at least 1");
  if (quorum != 1 && !HasQuorum()) {
    return Bad(absl::StrCat("quorum is ", quorum, " in ", name, " mode, which has none"),
               "drop it, or use backup, bounded or async mode");
  }
  if (mode == ConsistencyMode::kBounded && !max_staleness.has_value()) {
    return Bad("bounded mode has no max_staleness", "say how many steps old a gradient may be");
  }
  if (mode != ConsistencyMode::kBounded && max_staleness.has_value()) {
    return Bad(absl::StrCat("max_staleness is ", *max_staleness, " in ", name, " mode"),
               "only bounded mode has such a bound; use it, or drop max_staleness");
  }
  if (mode != ConsistencyMode::kSsp && slack != 0) {
    return Bad(absl::StrCat("slack is ", slack, " in ", name, " mode"),
               "only ssp mode has it; use it, or drop slack");
  }
  if (mode != ConsistencyMode::kSync && order == ReductionOrder::kRank) {
    return Bad(
        absl::StrCat("the order of reduction is rank in ", name, " mode"),
        "only in sync mode does every worker contribute, so that there is such an order; use it, "
        "or the order of arrival");
  }
  if (discount_stale && CountsFreshOnly()) {
    return Bad(absl::StrCat("discount_stale is set in ", name, " mode"),
               "stale gradients never count there; use bounded, ssp or async mode, or drop "
               "discount_stale");
  }
  const bool on = gap_aware == RuleChoice::kOn || ordered_momentum == RuleChoice::kOn ||
                  divided_momentum == RuleChoice::kOn;
  if (on && CountsFreshOnly()) {
    return Bad(absl::StrCat("a rule for stale gradients is on in ", name, " mode"),
               "stale gradients never count there; use bounded, ssp or async mode, or leave the "
               "rules to the server (auto)");
  }
  if (inconsistent_reads && mode != ConsistencyMode::kAsync) {
    return Bad(absl::StrCat("inconsistent_reads is set in ", name, " mode"),
               "only async mode has such reads; use it, or drop inconsistent_reads");
  }
  // A message, and so a checkpoint, cannot hold a shorter time.
  if (max_step_wait < absl::Microseconds(1)) {
    return Bad(absl::StrCat("max_step_wait is ", absl::FormatDuration(max_step_wait)),
               "expected at least a microsecond");
  }
  return absl::OkStatus();
}

bool operator==(const Consistency& a, const Consistency& b) {
  const auto fields = [](const Consistency& c) {
    return std::tie(c.mode, c.quorum, c.max_staleness, c.slack, c.reduction, c.order,
                    c.discount_stale, c.gap_aware, c.ordered_momentum, c.divided_momentum,
                    c.inconsistent_reads, c.max_step_wait, c.on_max_step_wait);
  };
  return fields(a) == fields(b);
}

absl::string_view ConsistencyModeName(ConsistencyMode mode) {
  return kModes[static_cast<int>(mode)];
}

absl::Status ParseConsistencyMode(absl::string_view name, ConsistencyMode* mode) {
  return Parse("mode", name, kModes, mode);
}

absl::string_view ReductionName(Reduction reduction) {
  return kReductions[static_cast<int>(reduction)];
}

absl::Status ParseReduction(absl::string_view name, Reduction* reduction) {
  return Parse("reduction", name, kReductions, reduction);
}

absl::string_view ReductionOrderName(ReductionOrder order) {
  return kOrders[static_cast<int>(order)];
}

absl::Status ParseReductionOrder(absl::string_view name, ReductionOrder* order) {
  return Parse("order of reduction", name, kOrders, order);
}

void SetStalenessRules(RuleChoice all, Consistency* consistency) {
  consistency->gap_aware = all;
  consistency->ordered_momentum = all;
  consistency->divided_momentum = all;
}

absl::Status ParseStalenessRules(absl::string_view text, Consistency* consistency) {
  SetStalenessRules(text == "auto" ? RuleChoice::kAuto : RuleChoice::kOff, consistency);
  if (text == "auto" || text == "none") return absl::OkStatus();
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (word == "gap-aware") {
      consistency->gap_aware = RuleChoice::kOn;
    } else if (word == "ordered-momentum") {
      consistency->ordered_momentum = RuleChoice::kOn;
    } else if (word == "divided-momentum") {
      consistency->divided_momentum = RuleChoice::kOn;
    } else {
      const std::string meant =
          DidYouMean(word, {"auto", "none", "gap-aware", "ordered-momentum", "divided-momentum"});
      return Bad(absl::StrCat("the rules for stale gradients are \"", text, "\""),
                 absl::StrCat("expected auto, none, or some of gap-aware, ordered-momentum and "
                              "divided-momentum, separated by commas",
                              meant));
    }
  }
  return absl::OkStatus();
}

absl::string_view StepWaitActionName(StepWaitAction action) {
  return kActions[static_cast<int>(action)];
}

absl::Status ParseStepWaitAction(absl::string_view name, StepWaitAction* action) {
  return Parse("action", name, kActions, action);
}

}  // namespace sluice
