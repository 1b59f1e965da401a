#include "common/protocol/optimizer_config.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

std::string Quoted(absl::string_view name) { return absl::StrCat("\"", Shown(name), "\""); }

// Errors name a group by its first parameter.
std::string NameOf(const OptimizerGroup& group) {
  return absl::StrCat("the optimizer's group of ", Quoted(group.parameters.front()));
}

absl::Status CheckGroup(const OptimizerGroup& group, const OptimizerOptions& defaults) {
  if (group.parameters.empty()) {
    return MakeError(Reason::kBadOptimizer,
                     "a group of the optimizer has no parameters, expected at least one");
  }
  if (group.options.index() != defaults.index()) {
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat(NameOf(group), " is of ", OptimizerName(group.options), ", expected ",
                     OptimizerName(defaults), ", as for the rest of the model"));
  }
  const absl::Status options = Validate(group.options);
  if (options.ok()) return options;
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("in ", NameOf(group), ", ", options.message()));
}

absl::Status GroupsDiffer(absl::string_view how) {
  return MakeError(
      Reason::kOptimizerMismatch,
      absl::StrCat("this worker's optimizer ", how, "; start every worker with the same groups"));
}

absl::Status CheckSameParameters(const OptimizerGroup& job, const OptimizerGroup& worker) {
  if (job.parameters.size() != worker.parameters.size()) {
    return GroupsDiffer(
        absl::StrCat("has ", worker.parameters.size(), " parameters in its group of ",
                     Quoted(worker.parameters.front()), ", the job's has ", job.parameters.size()));
  }
  for (size_t i = 0; i < job.parameters.size(); ++i) {
    if (job.parameters[i] == worker.parameters[i]) continue;
    return GroupsDiffer(absl::StrCat("has ", Quoted(worker.parameters[i]),
                                     " in a group where the job's has ",
                                     Quoted(job.parameters[i])));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const OptimizerConfig& config) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const TableOptimizer& own : config.tables) {
    if (!seen.insert(own.table).second) {
      return MakeError(
          Reason::kBadOptimizer,
          absl::StrCat("table ", Quoted(own.table), " has two optimizers, expected one at most"));
    }
    const absl::Status options = Validate(own.options);
    if (options.ok()) continue;
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat("in the optimizer of table ", Quoted(own.table), ", ", options.message()));
  }
  return absl::OkStatus();
}

// LAMB and a program's optimizer need whole tensors, and a worker that steps itself has no rows.
absl::Status CheckWorksOnRows(const OptimizerOptions& options, absl::string_view table) {
  if (!std::holds_alternative<LambOptions>(options) && !WorkersStep(options) &&
      !IsOfProgram(options)) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kBadOptimizer,
      absl::StrCat("table ", Quoted(table), " has the optimizer ", OptimizerName(options),
                   ", which does not work on single rows; give the table an optimizer "
                   "of its own, for example adagrad"));
}

absl::Status CheckTablesFit(const OptimizerConfig& config, const Layout& layout) {
  absl::flat_hash_set<absl::string_view> tables;
  for (const TableSpec& table : layout.tables()) {
    tables.insert(table.name);
    const absl::Status works = CheckWorksOnRows(OptionsFor(config, table.name), table.name);
    if (!works.ok()) return works;
  }
  for (const TableOptimizer& own : config.tables) {
    if (tables.contains(own.table)) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the optimizer has options for table ", Quoted(own.table),
                                  ", which is not in the model; expected names of its tables"));
  }
  return absl::OkStatus();
}

absl::Status CheckSameTables(const OptimizerConfig& job, const OptimizerConfig& worker) {
  if (job.tables.size() != worker.tables.size()) {
    return GroupsDiffer(absl::StrCat("has options for ", worker.tables.size(),
                                     " tables, the job's has them for ", job.tables.size()));
  }
  for (size_t i = 0; i < job.tables.size(); ++i) {
    const std::string& table = job.tables[i].table;
    if (table != worker.tables[i].table) {
      return GroupsDiffer(absl::StrCat("has options for table ", Quoted(worker.tables[i].table),
                                       " where the job's has them for ", Quoted(table)));
    }
    const absl::Status same = CheckSameOptimizer(job.tables[i].options, worker.tables[i].options,
                                                 absl::StrCat(" of table ", Quoted(table)));
    if (!same.ok()) return same;
  }
  return absl::OkStatus();
}

// " of the optimizer's group of "bias"".
std::string OfGroup(const OptimizerConfig& job, uint32_t group) {
  return group == 0 ? "" : absl::StrCat(" of ", NameOf(job.groups[group - 1]));
}

absl::Status CheckChangedGroup(const OptimizerOptions& first, const OptimizerOptions& changed) {
  if (changed.index() != first.index()) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the optimizer is ", OptimizerName(changed), ", expected ",
                                  OptimizerName(first), ", with which the job began"));
  }
  const absl::Status valid = Validate(changed);
  if (!valid.ok()) return valid;
  const std::vector<SlotInfo> had = SlotsOf(first);
  const std::vector<SlotInfo> needed = SlotsOf(changed);
  for (size_t i = 0; i < had.size(); ++i) {
    if (had[i].needed || !needed[i].needed) continue;
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat("the options now need ", needed[i].name,
                     ", which the server has not kept since the first step; begin with momentum, "
                     "amsgrad and centered as they will be needed"));
  }
  return absl::OkStatus();
}

}  // namespace

const OptimizerOptions& OptionsFor(const OptimizerConfig& config, absl::string_view table) {
  for (const TableOptimizer& own : config.tables) {
    if (own.table == table) return own.options;
  }
  return config.options;
}

absl::Status Validate(const OptimizerConfig& config) {
  const absl::Status options = Validate(config.options);
  if (!options.ok()) return options;
  if (WorkersStep(config.options) && !config.groups.empty()) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat(OptimizerTitle(config.options), " has ", config.groups.size(),
                                  " groups of parameters, expected none: the workers' own "
                                  "optimizers may have some"));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const OptimizerGroup& group : config.groups) {
    const absl::Status valid = CheckGroup(group, config.options);
    if (!valid.ok()) return valid;
    for (const std::string& name : group.parameters) {
      if (seen.insert(name).second) continue;
      return MakeError(Reason::kBadOptimizer,
                       absl::StrCat("parameter ", Quoted(name),
                                    " is in the optimizer's groups twice, expected once at most"));
    }
  }
  return CheckTables(config);
}

absl::Status CheckFits(const OptimizerConfig& config, const Layout& layout) {
  for (const OptimizerGroup& group : config.groups) {
    for (const std::string& name : group.parameters) {
      const LayoutRange* const range = layout.Find(name);
      if (range != nullptr && range->kind == RangeKind::kParameter) continue;
      return MakeError(
          Reason::kBadOptimizer,
          absl::StrCat(NameOf(group), " holds ", Quoted(name), ", which is ",
                       range == nullptr ? "not in the model" : "a statistic, not a parameter",
                       "; expected names of the model's parameters"));
    }
  }
  return CheckTablesFit(config, layout);
}

absl::Status CheckSameOptimizer(const OptimizerConfig& job, const OptimizerConfig& worker) {
  const absl::Status options = CheckSameOptimizer(job.options, worker.options);
  if (!options.ok()) return options;
  if (job.groups.size() != worker.groups.size()) {
    return GroupsDiffer(absl::StrCat("has ", worker.groups.size(),
                                     " groups of parameters, the job's has ", job.groups.size()));
  }
  for (size_t i = 0; i < job.groups.size(); ++i) {
    const absl::Status parameters = CheckSameParameters(job.groups[i], worker.groups[i]);
    if (!parameters.ok()) return parameters;
    if (CheckSameOptimizer(job.groups[i].options, worker.groups[i].options).ok()) continue;
    return CheckSameOptimizer(
        job.groups[i].options, worker.groups[i].options,
        absl::StrCat(" in the group of ", Quoted(job.groups[i].parameters.front())));
  }
  return CheckSameTables(job, worker);
}

ChangedOptions::ChangedOptions(Groups groups) : groups_(std::move(groups)) {
  std::vector<double> numbers;
  for (auto& [group, options] : groups_) {
    numbers.push_back(group);
    numbers.push_back(static_cast<double>(options.index()));
    for (const OptionRef& option : OptionsOf(options)) numbers.push_back(option.value());
  }
  checksum_ = absl::Hash<std::vector<double>>()(numbers);
}

SharedOptions ShareOptions(ChangedOptions::Groups groups) {
  return groups.empty() ? nullptr : std::make_shared<const ChangedOptions>(std::move(groups));
}

const OptimizerOptions& OptionsOf(const OptimizerConfig& config, const SharedOptions& changed,
                                  uint32_t group) {
  if (changed != nullptr) {
    const auto found = changed->groups().find(group);
    if (found != changed->groups().end()) return found->second;
  }
  return group == 0 ? config.options : config.groups[group - 1].options;
}

absl::Status CheckChanged(const OptimizerConfig& job, const SharedOptions& changed) {
  if (changed == nullptr || changed->groups().empty()) return absl::OkStatus();
  if (WorkersStep(job.options)) {
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat("the options of ", OptimizerTitle(job.options), " have changed, expected ",
                     "none to: the workers' own optimizers have those that change"));
  }
  const uint32_t last = changed->groups().rbegin()->first;
  if (last > job.groups.size()) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the options of group ", last, " have changed, expected at most ",
                                  job.groups.size(), ", the number of the job's groups"));
  }
  for (const auto& [group, options] : changed->groups()) {
    const absl::Status sound = CheckChangedGroup(OptionsOf(job, nullptr, group), options);
    if (sound.ok()) continue;
    if (group == 0) return sound;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("in ", NameOf(job.groups[group - 1]), ", ", sound.message()));
  }
  return absl::OkStatus();
}

std::string DifferenceOf(const OptimizerConfig& job, const SharedOptions& changed,
                         const SharedOptions& others, absl::string_view other) {
  if (changed == others) return "";
  const bool both = changed != nullptr && others != nullptr;
  if (both && changed->checksum() == others->checksum()) return "";
  for (const SharedOptions& one : {changed, others}) {
    if (one == nullptr) continue;
    for (const auto& entry : one->groups()) {
      const auto values = FirstDifference(OptionsOf(job, changed, entry.first),
                                          OptionsOf(job, others, entry.first));
      if (!values.has_value()) continue;
      return absl::StrCat(values->option, OfGroup(job, entry.first), " is ", values->first,
                          ", and ", values->second, " with ", Shown(other));
    }
  }
  return "";
}

}  // namespace sluice
