#include "common/protocol/optimizer_options.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

template <size_t... kIndices>
std::vector<OptimizerOptions> Defaults(std::index_sequence<kIndices...>) {
  return {OptimizerOptions(std::in_place_index<kIndices>)...};
}

OptimizerNames NamesOf(const OptimizerOptions& options) {
  return std::visit([](const auto& own) { return own.kNames; }, options);
}

// Rules that tie several options together; most optimizers have none.
template <typename Options>
absl::Status CheckTogether(const Options&) {
  return absl::OkStatus();
}

absl::Status CheckTogether(const SgdOptions& o) {
  if (!o.nesterov || (o.momentum > 0 && o.dampening == 0)) return absl::OkStatus();
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("Nesterov needs momentum above 0 and dampening 0, found ",
                                o.momentum, " and ", o.dampening));
}

absl::Status CheckTogether(const AveragingOptions& o) {
  if (!o.outer_nesterov || o.outer_momentum > 0) return absl::OkStatus();
  return MakeError(Reason::kBadOptimizer,
                   "outer_nesterov needs outer_momentum above 0, found 0; set outer_momentum, or "
                   "leave outer_nesterov out");
}

std::string Shown(const OptionRef& option, int digits) {
  if (option.info.domain == OptionDomain::kSwitch) return option.value() == 0 ? "off" : "on";
  return absl::StrFormat("%.*g", digits, option.value());
}

// Sets the option `name` of `optimizer`, which has `options`.
absl::Status Set(const std::string& name, double value, const std::vector<OptionRef>& options,
                 const OptimizerOptions& optimizer) {
  std::vector<std::string> names;
  for (const OptionRef& option : options) {
    names.emplace_back(option.info.name);
    if (names.back() != name) continue;
    option.set(value);
    return absl::OkStatus();
  }
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("\"", sluice::Shown(name), "\" is not an option of ",
                                OptimizerName(optimizer), ", which has ", Listed(names)));
}

}  // namespace

std::vector<OptimizerOptions> AllOptimizers() {
  return Defaults(std::make_index_sequence<std::variant_size_v<OptimizerOptions>>());
}

absl::string_view OptimizerName(const OptimizerOptions& options) { return NamesOf(options).name; }
absl::string_view OptimizerTitle(const OptimizerOptions& options) { return NamesOf(options).title; }

std::string Listed(const std::vector<std::string>& names, absl::string_view last) {
  std::string listed;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i > 0 && i + 1 == names.size();
    absl::StrAppend(&listed, i == 0 ? "" : is_last ? absl::StrCat(" ", last, " ") : ", ", names[i]);
  }
  return listed;
}

absl::StatusOr<OptimizerOptions> OptimizerNamed(absl::string_view name,
                                                const std::map<std::string, double>& values) {
  std::vector<std::string> names;
  for (OptimizerOptions& optimizer : AllOptimizers()) {
    names.emplace_back(OptimizerName(optimizer));
    if (names.back() != name) continue;
    const std::vector<OptionRef> options = OptionsOf(optimizer);
    for (const auto& [key, value] : values) {
      const absl::Status set = Set(key, value, options, optimizer);
      if (!set.ok()) return set;
    }
    return optimizer;
  }
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("there is no optimizer \"", Shown(name), "\"; expected ",
                                Listed(names, "or"), DidYouMean(name, names)));
}

std::vector<OptionRef> OptionsOf(OptimizerOptions& options) {
  return std::visit([](auto& own) { return own.options(); }, options);
}

std::vector<SlotInfo> SlotsOf(const OptimizerOptions& options) {
  return std::visit([](const auto& own) { return own.slots(); }, options);
}

bool PublishesGradients(const OptimizerOptions& options) {
  return std::holds_alternative<MeanGradientOptions>(options);
}

bool WorkersStep(const OptimizerOptions& options) {
  return std::holds_alternative<AveragingOptions>(options) || PublishesGradients(options);
}

bool IsOfProgram(const OptimizerOptions& options) {
  return std::holds_alternative<ProgramOptions>(options);
}

double LearningRateOf(const OptimizerOptions& options) {
  return std::visit(
      [](const auto& own) -> double {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (std::is_same_v<Own, AveragingOptions> ||
                      std::is_same_v<Own, MeanGradientOptions>) {
          return 0;
        } else {
          return own.learning_rate;
        }
      },
      options);
}

absl::Status Validate(const OptimizerOptions& options) {
  OptimizerOptions copy = options;
  for (const OptionRef& option : OptionsOf(copy)) {
    if (IsIn(option.info.domain, option.value())) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat(OptimizerTitle(options), "'s ", option.info.name, " is ",
                                  option.value(), ", expected ", Expected(option.info.domain)));
  }
  return std::visit([](const auto& own) { return CheckTogether(own); }, options);
}

absl::optional<OptionDifference> FirstDifference(OptimizerOptions first, OptimizerOptions second) {
  const std::vector<OptionRef> own = OptionsOf(first);
  const std::vector<OptionRef> other = OptionsOf(second);
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].value() == other[i].value()) continue;
    const bool alike = absl::StrCat(own[i].value()) == absl::StrCat(other[i].value());
    const int digits = alike ? 17 : 6;  // to tell them apart
    return OptionDifference{own[i].info.name, Shown(own[i], digits), Shown(other[i], digits)};
  }
  return absl::nullopt;
}

absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker,
                                absl::string_view where) {
  if (job.index() != worker.index()) {
    return MakeError(
        Reason::kOptimizerMismatch,
        absl::StrCat("this worker's optimizer is ", OptimizerName(worker), ", the job's is ",
                     OptimizerName(job), "; start every worker with the same options"));
  }
  const auto differ = FirstDifference(job, worker);
  if (!differ.has_value()) return absl::OkStatus();
  return MakeError(Reason::kOptimizerMismatch,
                   absl::StrCat("this worker's optimizer has ", differ->option, " ", differ->second,
                                where, ", the job's has ", differ->first,
                                "; start every worker with the same options"));
}

}  // namespace sluice
