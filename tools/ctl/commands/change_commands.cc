// policy, lr, evict, drain: they ask Admin to change the job.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/command_line.h"
#include "common/protocol/consistency.h"
#include "common/wire/settings.h"
#include "server/program/optional_flag.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/json.h"
#include "tools/ctl/render/status_text.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

// What `policy set` was given. The names are those of the server's flags.
struct PolicyFlags {
  absl::optional<std::string> mode;
  absl::optional<uint32_t> quorum;
  absl::optional<uint32_t> max_staleness;
  absl::optional<uint32_t> slack;
  absl::optional<std::string> reduction;
  absl::optional<std::string> order;
  absl::optional<std::string> staleness_rules;
  absl::optional<double> max_step_wait;  // seconds
  absl::optional<std::string> on_max_step_wait;
  absl::optional<bool> discount_stale;
  absl::optional<bool> inconsistent_reads;
};

// Prints the answer as JSON, or `text` unless --quiet is given.
template <typename Response>
absl::Status Tell(const CommonFlags& flags, const absl::StatusOr<Response>& response,
                  const std::function<std::string(const Response&)>& text) {
  if (!response.ok()) return response.status();
  if (flags.json) {
    std::cout << JsonLine(*response);
  } else if (!flags.quiet) {
    std::cout << text(*response);
  }
  return absl::OkStatus();
}

// ---- policy ----

// The enum's name for a word of the flags: "weighted-mean" is WEIGHTED_MEAN. The parsing of the
// command line has checked the word.
template <typename Enum>
Enum EnumOf(const std::string& word, bool (*parse)(const std::string&, Enum*)) {
  Enum value = {};
  parse(absl::AsciiStrToUpper(absl::StrReplaceAll(word, {{"-", "_"}})), &value);
  return value;
}

bool NamesAny(const PolicyFlags& own) {
  return own.mode || own.quorum || own.max_staleness || own.slack || own.reduction || own.order ||
         own.staleness_rules || own.max_step_wait || own.on_max_step_wait || own.discount_stale ||
         own.inconsistent_reads;
}

void ApplyWords(const PolicyFlags& own, v1::Consistency& rules) {
  if (own.mode) rules.set_mode(EnumOf<v1::ConsistencyMode>(*own.mode, v1::ConsistencyMode_Parse));
  if (own.reduction) {
    rules.set_reduction(EnumOf<v1::Reduction>(*own.reduction, v1::Reduction_Parse));
  }
  if (own.order) rules.set_order(EnumOf<v1::ReductionOrder>(*own.order, v1::ReductionOrder_Parse));
  if (own.on_max_step_wait) {
    rules.set_on_max_step_wait(
        EnumOf<v1::StepWaitAction>(*own.on_max_step_wait, v1::StepWaitAction_Parse));
  }
}

absl::Status ApplyStalenessRules(const PolicyFlags& own, v1::Consistency& rules) {
  if (!own.staleness_rules) return absl::OkStatus();
  Consistency chosen;
  const absl::Status parsed = ParseStalenessRules(*own.staleness_rules, &chosen);
  if (!parsed.ok()) return WrongCommandLine(parsed);
  const v1::Consistency message = ToProto(chosen);
  rules.set_gap_aware(message.gap_aware());
  rules.set_ordered_momentum(message.ordered_momentum());
  rules.set_divided_momentum(message.divided_momentum());
  return absl::OkStatus();
}

absl::Status Apply(const PolicyFlags& own, v1::Consistency& rules) {
  ApplyWords(own, rules);
  if (own.quorum) rules.set_quorum(*own.quorum);
  if (own.max_staleness) rules.set_max_staleness(*own.max_staleness);
  if (own.slack) rules.set_slack(*own.slack);
  if (own.discount_stale) rules.set_discount_stale(*own.discount_stale);
  if (own.inconsistent_reads) rules.set_inconsistent_reads(*own.inconsistent_reads);
  if (own.max_step_wait) {
    *rules.mutable_max_step_wait() = ToProto(absl::Seconds(*own.max_step_wait));
  }
  return ApplyStalenessRules(own, rules);
}

absl::Status ShowPolicy(const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  const auto state = (*client)->GetState();
  if (!state.ok()) return state.status();
  std::cout << (flags.json ? JsonLine(state->consistency()) : PolicyText(*state));
  return absl::OkStatus();
}

// With a mode, the rules are new; without one, those of the server are changed.
absl::Status SetPolicy(const PolicyFlags& own, const CommonFlags& flags) {
  if (!NamesAny(own)) {
    return absl::InvalidArgumentError(
        "found no rule to set, expected at least one, such as --mode=async; policy show shows "
        "the rules");
  }
  v1::SetPolicyRequest request;
  absl::Status applied = Apply(own, *request.mutable_consistency());
  if (!applied.ok()) return applied;
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  if (!own.mode) {
    auto state = (*client)->GetState();
    if (!state.ok()) return state.status();
    *request.mutable_consistency() = *request.mutable_expected() = state->consistency();
    applied = Apply(own, *request.mutable_consistency());
    if (!applied.ok()) return applied;
  }
  return Tell<v1::SetPolicyResponse>(flags, (*client)->SetPolicy(request), PolicySetText);
}

void AddWord(CLI::App& app, const std::string& name, absl::optional<std::string>& word,
             const std::vector<std::string>& words, const std::string& help) {
  AddOptional(app, name, word, help)->check(CLI::IsMember(words));
}

void AddPolicyFlags(CLI::App& app, PolicyFlags& own) {
  AddWord(app, "--mode", own.mode, {"sync", "backup", "bounded", "ssp", "async"},
          "replaces all rules by this mode's; without it, the server's rules are changed");
  AddOptional(app, "--quorum", own.quorum, "backup, bounded, async: gradients per step");
  AddOptional(app, "--max-staleness", own.max_staleness,
              "bounded: drop gradients of a larger staleness, in steps");
  AddOptional(app, "--slack", own.slack,
              "ssp: how many pushes a worker may be ahead of the slowest");
  AddWord(app, "--reduction", own.reduction, {"mean", "weighted-mean", "sum"},
          "how the gradients of a step become one");
  AddWord(app, "--reduction-order", own.order, {"arrival", "rank"},
          "in which order gradients are added up; rank in sync only");
  AddOptional(
      app, "--staleness-rules", own.staleness_rules,
      "auto, none, or some of gap-aware, ordered-momentum and divided-momentum, separated by "
      "commas");
  AddOptional(app, "--max-step-wait", own.max_step_wait,
              "seconds for which a worker may delay a step")
      ->check(SecondsFrom(kMicrosecond));
  AddWord(app, "--on-max-step-wait", own.on_max_step_wait, {"wait", "proceed", "evict"},
          "what to do after --max-step-wait");
  AddOptional(app, "--discount-stale", own.discount_stale,
              "true or false: multiply gradients by 1 / (1 + staleness)");
  AddOptional(app, "--inconsistent-reads", own.inconsistent_reads,
              "true or false: async: let workers read parameters while they are written");
}

void AddPolicy(CLI::App& app, std::vector<Command>& commands) {
  CLI::App& policy = *app.add_subcommand("policy", "shows or changes the rules of the job");
  policy.require_subcommand(1);
  commands.push_back({policy.add_subcommand("show", "shows the rules"), ShowPolicy});
  auto own = std::make_shared<PolicyFlags>();
  CLI::App& set = *policy.add_subcommand("set", "changes rules from the next step on");
  AddPolicyFlags(set, *own);
  commands.push_back({&set, [own](const CommonFlags& flags) { return SetPolicy(*own, flags); }});
}

// ---- lr, evict, drain ----

absl::Status SetLearningRate(double learning_rate, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  return Tell<v1::SetLearningRateResponse>(
      flags, (*client)->SetLearningRate(learning_rate), [=](const auto& response) {
        return absl::StrCat("from step ", response.step(), " on: learning rate ", learning_rate,
                            "\n");
      });
}

absl::Status Evict(const std::string& worker, bool yes, const CommonFlags& flags) {
  const auto options = EndpointFrom(flags.connection);
  if (!options.ok()) return options.status();
  const absl::Status wanted =
      Confirm(yes, absl::StrCat("Evict ", Printable(worker), " from the job at ", options->address,
                                "? Its process cannot join again."));
  if (!wanted.ok()) return wanted;
  const auto client = OperatorClient::Connect(*options);
  if (!client.ok()) return client.status();
  return Tell<v1::EvictWorkerResponse>(flags, (*client)->EvictWorker(worker), [&](const auto&) {
    return absl::StrCat("evicted ", Printable(worker), "\n");
  });
}

absl::Status Drain(bool yes, const CommonFlags& flags) {
  const auto options = EndpointFrom(flags.connection);
  if (!options.ok()) return options.status();
  const absl::Status wanted =
      Confirm(yes, absl::StrCat("End the job at ", options->address,
                                "? The server takes no more pushes, and its process ends."));
  if (!wanted.ok()) return wanted;
  const auto client = OperatorClient::Connect(*options);
  if (!client.ok()) return client.status();
  return Tell<v1::DrainResponse>(flags, (*client)->Drain(), [](const auto& response) {
    return absl::StrCat("draining at step ", response.step(), "\n");
  });
}

void AddYes(CLI::App& app, bool& yes) {
  app.add_flag("--yes", yes, "do not ask; needed where no terminal can be asked");
}

void AddLearningRate(CLI::App& app, std::vector<Command>& commands) {
  CLI::App& lr = *app.add_subcommand("lr", "changes the learning rate");
  lr.require_subcommand(1);
  auto rate = std::make_shared<double>(0);
  CLI::App& set = *lr.add_subcommand("set", "sets the learning rate from the next step on");
  set.add_option("rate", *rate, "the rate, which the schedule multiplies by its factor")
      ->required()
      ->check(NumberFrom(0, 1e6));
  commands.push_back(
      {&set, [rate](const CommonFlags& flags) { return SetLearningRate(*rate, flags); }});
}

}  // namespace

void AddChangeCommands(CLI::App& app, std::vector<Command>& commands) {
  AddPolicy(app, commands);
  AddLearningRate(app, commands);
  auto evicted = std::make_shared<std::pair<std::string, bool>>();
  CLI::App& evict = *app.add_subcommand("evict", "removes a worker from the job");
  evict.add_option("worker", evicted->first, "its name, as workers shows it")->required();
  AddYes(evict, evicted->second);
  commands.push_back({&evict, [evicted](const CommonFlags& flags) {
                        return Evict(evicted->first, evicted->second, flags);
                      }});
  auto yes = std::make_shared<bool>(false);
  CLI::App& drain =
      *app.add_subcommand("drain", "ends the job in good order, with a last checkpoint");
  AddYes(drain, *yes);
  commands.push_back({&drain, [yes](const CommonFlags& flags) { return Drain(*yes, flags); }});
}

}  // namespace sluice
