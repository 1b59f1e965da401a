#include "worker/program/optimizer_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace sluice {
namespace {

// An option, and the optimizers that have it by their defaults.
struct Flag {
  OptionInfo info;
  std::map<double, std::vector<std::string>> owners;
};

std::string FlagName(absl::string_view option) {
  return absl::StrCat("--", absl::StrReplaceAll(option, {{"_", "-"}}));
}

std::vector<OptimizerOptions> Choices() {
  std::vector<OptimizerOptions> choices;
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (!WorkersStep(options) && !IsOfProgram(options)) choices.push_back(options);
  }
  return choices;
}

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags;
  for (OptimizerOptions options : Choices()) {
    for (const OptionRef& option : OptionsOf(options)) {
      auto flag = std::find_if(flags.begin(), flags.end(), [&option](const Flag& known) {
        return absl::string_view(known.info.name) == option.info.name;
      });
      if (flag == flags.end()) flag = flags.insert(flag, {option.info, {}});
      flag->owners[option.value()].emplace_back(OptimizerName(options));
    }
  }
  return flags;
}

// "Nesterov momentum (sgd)", "size of a step (default: 0.01 with sgd; 0.001 with adam, lamb)".
std::string HelpOf(const Flag& flag) {
  const bool is_switch = flag.info.domain == OptionDomain::kSwitch;
  std::vector<std::string> parts;
  for (const auto& [value, owners] : flag.owners) {
    const std::string names = absl::StrJoin(owners, ", ");
    parts.push_back(is_switch ? names : absl::StrCat(value, " with ", names));
  }
  return absl::StrCat(flag.info.help, is_switch ? " (" : " (default: ", absl::StrJoin(parts, "; "),
                      ")");
}

absl::Status NoOption(const std::string& name, OptimizerOptions options) {
  std::vector<std::string> own;
  for (const OptionRef& option : OptionsOf(options)) own.push_back(FlagName(option.info.name));
  return absl::InvalidArgumentError(absl::StrCat(FlagName(name), " is not an option of ",
                                                 OptimizerName(options), ", which has ",
                                                 absl::StrJoin(own, ", ")));
}

}  // namespace

void AddOptimizerFlags(CLI::App& app, OptimizerFlags& flags) {
  CLI::App& group = *app.add_option_group("Optimizer", "How parameters change; as in torch::optim");
  std::vector<std::string> names;
  for (const OptimizerOptions& choice : Choices()) names.emplace_back(OptimizerName(choice));
  group.add_option("--optimizer", flags.optimizer, absl::StrJoin(names, ", "))
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  for (const Flag& flag : AllFlags()) {
    const std::function<void(const double&)> set =
        [&flags, name = std::string(flag.info.name)](double value) { flags.values[name] = value; };
    if (flag.info.domain == OptionDomain::kSwitch) {
      group.add_flag_callback(
          FlagName(flag.info.name), [set] { set(1); }, HelpOf(flag));
    } else {
      group.add_option_function<double>(FlagName(flag.info.name), set, HelpOf(flag));
    }
  }
}

absl::StatusOr<OptimizerOptions> OptimizerFrom(const OptimizerFlags& flags) {
  OptimizerOptions chosen;
  for (const OptimizerOptions& options : Choices()) {
    if (OptimizerName(options) == flags.optimizer) chosen = options;
  }
  const std::vector<OptionRef> options = OptionsOf(chosen);
  for (const auto& [name, value] : flags.values) {
    const auto option = std::find_if(options.begin(), options.end(), [&, &name = name](auto& own) {
      return own.info.name == name;
    });
    if (option == options.end()) return NoOption(name, chosen);
    option->set(value);
  }
  const absl::Status valid = Validate(chosen);
  if (!valid.ok()) return valid;
  return chosen;
}

void AddAveragingFlags(CLI::App& app, LocalSteps& local) {
  app.add_option(
         "--moving-rate", local.moving_rate,
         "with --local-steps: how far the server's parameters move towards the workers' mean")
      ->capture_default_str();
  app.add_option("--outer-momentum", local.outer_momentum,
                 "with --local-steps: share of the server's last step that is added to this one "
                 "(default: 0.3, or 0 with one local step or with elastic averaging)");
  app.add_flag("--outer-nesterov", local.outer_nesterov,
               "with --local-steps: Nesterov momentum of the server's steps");
}

}  // namespace sluice
