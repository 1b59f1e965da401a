#include "common/wire/optimizer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "google/protobuf/message.h"

namespace sluice {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FieldOf(const Message& message, absl::string_view name) {
  return message.GetDescriptor()->FindFieldByName(std::string(name));
}

void PutOptions(OptimizerOptions options, v1::OptimizerConfig* message) {
  Message* const to =
      message->GetReflection()->MutableMessage(message, FieldOf(*message, OptimizerName(options)));
  for (const OptionRef& option : OptionsOf(options)) {
    const FieldDescriptor* const field = FieldOf(*to, option.info.name);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        to->GetReflection()->SetBool(to, field, option.value() != 0);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        to->GetReflection()->SetUInt32(to, field, static_cast<uint32_t>(option.value()));
        break;
      default:
        to->GetReflection()->SetDouble(to, field, option.value());
    }
  }
}

double NumberIn(const Message& from, const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return from.GetReflection()->GetBool(from, field) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_UINT32:
      return from.GetReflection()->GetUInt32(from, field);
    default:
      return from.GetReflection()->GetDouble(from, field);
  }
}

absl::StatusOr<OptimizerOptions> TakeOptions(const v1::OptimizerConfig& message) {
  // Looked up once for a message: a job may have a group for each of its tensors.
  const FieldDescriptor* const kind = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->oneof_decl(0));
  std::vector<std::string> names;
  for (OptimizerOptions options : AllOptimizers()) {
    if (kind == nullptr || kind->name() != OptimizerName(options)) {
      names.emplace_back(OptimizerName(options));
      continue;
    }
    const Message& from = message.GetReflection()->GetMessage(message, kind);
    for (const OptionRef& option : OptionsOf(options)) {
      option.set(NumberIn(from, FieldOf(from, option.info.name)));
    }
    return options;
  }
  return MakeError(
      Reason::kBadOptimizer,
      absl::StrCat("the optimizer is absent or unknown to this server; it knows ", Listed(names)));
}

// Adds the parameters of `from` to the last of `groups`.
absl::Status Continue(const v1::OptimizerGroup& from, std::vector<OptimizerGroup>& groups) {
  if (groups.empty() || from.has_options()) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("a group of the optimizer continues another, but ",
                                  groups.empty() ? "none comes before it"
                                                 : "has options of its own, expected none"));
  }
  std::vector<std::string>& parameters = groups.back().parameters;
  parameters.insert(parameters.end(), from.parameters().begin(), from.parameters().end());
  return absl::OkStatus();
}

absl::Status TakeTables(const v1::OptimizerConfig& message, std::vector<TableOptimizer>& tables) {
  if (message.tables_size() > static_cast<int>(TableSpec::kMaxTables)) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the optimizer has options for ", message.tables_size(),
                                  " tables, expected at most ", TableSpec::kMaxTables));
  }
  for (const v1::TableOptimizer& from : message.tables()) {
    auto own = TakeOptions(from.options());
    if (!own.ok()) return own.status();
    if (from.options().groups_size() > 0 || from.options().tables_size() > 0) {
      return MakeError(Reason::kBadOptimizer,
                       "the optimizer of a table has groups or tables, expected neither");
    }
    tables.push_back({from.table(), *std::move(own)});
  }
  return absl::OkStatus();
}

}  // namespace

v1::OptimizerConfig ToProto(const OptimizerConfig& config) {
  v1::OptimizerConfig message;
  PutOptions(config.options, &message);
  for (const OptimizerGroup& from : config.groups) {
    v1::OptimizerGroup* const to = message.add_groups();
    to->mutable_parameters()->Add(from.parameters.begin(), from.parameters.end());
    PutOptions(from.options, to->mutable_options());
  }
  for (const TableOptimizer& from : config.tables) {
    v1::TableOptimizer* const to = message.add_tables();
    to->set_table(from.table);
    PutOptions(from.options, to->mutable_options());
  }
  return message;
}

absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& message) {
  auto options = TakeOptions(message);
  if (!options.ok()) return options.status();
  OptimizerConfig config = {*std::move(options)};
  for (const v1::OptimizerGroup& from : message.groups()) {
    if (from.continues()) {
      const absl::Status continued = Continue(from, config.groups);
      if (!continued.ok()) return continued;
      continue;
    }
    auto own = TakeOptions(from.options());
    if (!own.ok()) return own.status();
    if (from.options().groups_size() > 0 || from.options().tables_size() > 0) {
      return MakeError(Reason::kBadOptimizer,
                       "a group of the optimizer has groups or tables of its own, expected none");
    }
    config.groups.push_back(
        {{from.parameters().begin(), from.parameters().end()}, *std::move(own)});
  }
  const absl::Status tables = TakeTables(message, config.tables);
  if (!tables.ok()) return tables;
  const absl::Status valid = Validate(config);
  if (!valid.ok()) return valid;
  return config;
}

void PutChanged(const SharedOptions& changed, GroupOptionsMessages* messages) {
  if (changed == nullptr) return;
  for (const auto& [group, options] : changed->groups()) {
    v1::GroupOptions& message = *messages->Add();
    message.set_group(group);
    PutOptions(options, message.mutable_options());
  }
}

absl::StatusOr<SharedOptions> ReadChanged(const GroupOptionsMessages& messages) {
  if (messages.empty()) return nullptr;
  if (static_cast<size_t>(messages.size()) > kMostChangedGroups) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the options of ", messages.size(),
                                  " groups have changed, expected at most ", kMostChangedGroups));
  }
  ChangedOptions::Groups changed;
  for (const v1::GroupOptions& message : messages) {
    auto options = TakeOptions(message.options());
    if (!options.ok()) return options.status();
    if (message.options().groups_size() > 0 || message.options().tables_size() > 0) {
      return MakeError(Reason::kBadOptimizer,
                       "changed options have groups or tables of their own, expected neither");
    }
    if (changed.emplace(message.group(), *std::move(options)).second) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("the changed options of group ", message.group(),
                                  " are there twice, expected once at most"));
  }
  return ShareOptions(std::move(changed));
}

}  // namespace sluice
