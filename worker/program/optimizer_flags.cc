#include "worker/program/optimizer_flags.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

struct Flag {
  const char* name;
  const char* help;
};

constexpr Flag kNumbers[] = {
    {"learning-rate", "of any optimizer (default: 0.01 of sgd, adagrad and rmsprop, else 0.001)"},
    {"weight-decay", "of any optimizer (default: 0.01 of adamw and lamb, else 0)"},
    {"momentum", "of sgd and rmsprop (default: 0)"},
    {"dampening", "of sgd (default: 0)"},
    {"beta1", "of adam, adamw and lamb (default: 0.9)"},
    {"beta2", "of adam, adamw and lamb (default: 0.999)"},
    {"eps", "of all but sgd (default: 1e-10 of adagrad, 1e-6 of lamb, else 1e-8)"},
    {"lr-decay", "of adagrad (default: 0)"},
    {"initial-accumulator-value", "of adagrad (default: 0)"},
    {"alpha", "of rmsprop (default: 0.99)"},
};
constexpr Flag kSwitches[] = {
    {"nesterov", "of sgd: Nesterov momentum"},
    {"amsgrad", "of adam and adamw: divide by the largest mean square so far"},
    {"centered", "of rmsprop: divide by the standard deviation"},
};

// An optimizer's options, each by the name of its flag.
struct Fields {
  OptimizerOptions options;
  std::map<std::string, double*> numbers;
  std::map<std::string, bool*> switches;
};

void Collect(SgdOptions& o, Fields& fields) {
  fields.numbers = {{"learning-rate", &o.learning_rate},
                    {"momentum", &o.momentum},
                    {"dampening", &o.dampening},
                    {"weight-decay", &o.weight_decay}};
  fields.switches = {{"nesterov", &o.nesterov}};
}

template <typename Options>
void CollectMoments(Options& o, Fields& fields) {
  fields.numbers = {{"learning-rate", &o.learning_rate},
                    {"beta1", &o.beta1},
                    {"beta2", &o.beta2},
                    {"eps", &o.eps},
                    {"weight-decay", &o.weight_decay}};
}

void Collect(LambOptions& o, Fields& fields) { CollectMoments(o, fields); }

void Collect(AdamOptions& o, Fields& fields) {
  CollectMoments(o, fields);
  fields.switches = {{"amsgrad", &o.amsgrad}};
}

void Collect(AdamWOptions& o, Fields& fields) {
  CollectMoments(o, fields);
  fields.switches = {{"amsgrad", &o.amsgrad}};
}

void Collect(AdagradOptions& o, Fields& fields) {
  fields.numbers = {{"learning-rate", &o.learning_rate},
                    {"lr-decay", &o.lr_decay},
                    {"weight-decay", &o.weight_decay},
                    {"initial-accumulator-value", &o.initial_accumulator_value},
                    {"eps", &o.eps}};
}

void Collect(RmsPropOptions& o, Fields& fields) {
  fields.numbers = {{"learning-rate", &o.learning_rate},
                    {"alpha", &o.alpha},
                    {"eps", &o.eps},
                    {"weight-decay", &o.weight_decay},
                    {"momentum", &o.momentum}};
  fields.switches = {{"centered", &o.centered}};
}

// Of no flag: workers average by --local-steps.
void Collect(AveragingOptions&, Fields&) {}

std::vector<OptimizerOptions> Known() {
  return {SgdOptions(),     AdamOptions(),    AdamWOptions(),
          AdagradOptions(), RmsPropOptions(), LambOptions()};
}

absl::Status NoOption(const std::string& flag, const std::string& optimizer, const Fields& fields) {
  std::vector<std::string> own;
  for (const auto& number : fields.numbers) own.push_back(absl::StrCat("--", number.first));
  for (const auto& toggle : fields.switches) own.push_back(absl::StrCat("--", toggle.first));
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is no option of ", optimizer,
                                                 ", which has ", absl::StrJoin(own, ", ")));
}

}  // namespace

void AddOptimizerFlags(CLI::App& app, OptimizerFlags& flags) {
  CLI::App& group = *app.add_option_group("Optimizer", "How parameters change; as in torch::optim");
  std::vector<std::string> names;
  for (const OptimizerOptions& known : Known()) names.emplace_back(OptimizerName(known));
  group.add_option("--optimizer", flags.optimizer, absl::StrJoin(names, ", "))
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  for (const Flag& flag : kNumbers) {
    const std::function<void(const double&)> set = [&flags, &flag](const double& value) {
      flags.numbers[flag.name] = value;
    };
    group.add_option_function<double>(absl::StrCat("--", flag.name), set, flag.help);
  }
  for (const Flag& flag : kSwitches) {
    group.add_flag_callback(
        absl::StrCat("--", flag.name), [&flags, &flag] { flags.switches.insert(flag.name); },
        flag.help);
  }
}

absl::StatusOr<OptimizerOptions> OptimizerFrom(const OptimizerFlags& flags) {
  Fields fields;
  for (const OptimizerOptions& known : Known()) {
    if (OptimizerName(known) == flags.optimizer) fields.options = known;
  }
  std::visit([&fields](auto& options) { Collect(options, fields); }, fields.options);
  for (const auto& [name, value] : flags.numbers) {
    const auto field = fields.numbers.find(name);
    if (field == fields.numbers.end()) return NoOption(name, flags.optimizer, fields);
    *field->second = value;
  }
  for (const std::string& name : flags.switches) {
    const auto field = fields.switches.find(name);
    if (field == fields.switches.end()) return NoOption(name, flags.optimizer, fields);
    *field->second = true;
  }
  const absl::Status valid = Validate(fields.options);
  if (!valid.ok()) return valid;
  return fields.options;
}

}  // namespace sluice
