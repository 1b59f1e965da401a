#include "worker/c/model.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"

namespace sluice {
namespace {

// `values` are those of options that are not among `options`, by their names.
absl::StatusOr<OptimizerOptions> NamedOptions(absl::string_view optimizer,
                                              absl::Span<const sluice_option> options,
                                              std::map<std::string, double> values = {}) {
  for (const sluice_option& option : options) {
    if (option.name == nullptr) return NoNameError("an option of the optimizer");
    values[option.name] = option.value;
  }
  return OptimizerNamed(optimizer, values);
}

absl::StatusOr<OptimizerOptions> NamedOptions(const char* optimizer, const sluice_option* options,
                                              size_t count) {
  if (optimizer == nullptr) return NoNameError("the optimizer");
  return NamedOptions(absl::string_view(optimizer), {options, count});
}

absl::StatusOr<RangeKind> KindOf(const sluice_tensor& tensor) {
  if (tensor.kind == SLUICE_PARAMETER) return RangeKind::kParameter;
  if (tensor.kind == SLUICE_STATISTIC) return RangeKind::kStatistic;
  return absl::InvalidArgumentError(absl::StrCat("the kind of ", Shown(tensor.name), " is ",
                                                 tensor.kind, ", expected SLUICE_PARAMETER or ",
                                                 "SLUICE_STATISTIC"));
}

absl::StatusOr<DataType> TypeOf(const sluice_tensor& tensor) {
  constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16,
                                 DataType::kBFloat16, DataType::kInt64};
  if (tensor.type >= SLUICE_FLOAT32 && tensor.type <= SLUICE_INT64) return kTypes[tensor.type];
  return absl::InvalidArgumentError(absl::StrCat("the type of ", Shown(tensor.name), " is ",
                                                 tensor.type, ", expected SLUICE_FLOAT32 to ",
                                                 "SLUICE_INT64"));
}

absl::StatusOr<TableSpec> SpecOf(const sluice_table& table) {
  if (table.name == nullptr) return NoNameError("a table");
  constexpr RowInitializerKind kKinds[] = {RowInitializerKind::kZero, RowInitializerKind::kUniform,
                                           RowInitializerKind::kNormal};
  if (table.initializer < SLUICE_ROWS_ZERO || table.initializer > SLUICE_ROWS_NORMAL) {
    return absl::InvalidArgumentError(
        absl::StrCat("the initializer of table ", Shown(table.name), " is ", table.initializer,
                     ", expected SLUICE_ROWS_ZERO to SLUICE_ROWS_NORMAL"));
  }
  if (table.divisor != SLUICE_ALL_CONTRIBUTORS && table.divisor != SLUICE_ROW_CONTRIBUTORS) {
    return absl::InvalidArgumentError(
        absl::StrCat("the divisor of table ", Shown(table.name), " is ", table.divisor,
                     ", expected SLUICE_ALL_CONTRIBUTORS or SLUICE_ROW_CONTRIBUTORS"));
  }
  TableSpec spec;
  spec.name = table.name;
  spec.width = table.width;
  spec.initializer = {kKinds[table.initializer], table.scale, table.seed};
  spec.divisor = table.divisor == SLUICE_ROW_CONTRIBUTORS ? RowDivisor::kRowContributors
                                                          : RowDivisor::kAllContributors;
  spec.admit_after = table.admit_after;
  spec.evict_after = table.evict_after;
  spec.max_rows = table.max_rows;
  return spec;
}

}  // namespace

absl::Status CheckRowIds(absl::string_view call, const Layout& layout, uint32_t table,
                         absl::Span<const RowId> ids) {
  if (table >= layout.tables().size()) {
    return absl::InvalidArgumentError(absl::StrCat(call, " got table ", table, ", the model has ",
                                                   layout.tables().size(),
                                                   " tables, which are counted from 0"));
  }
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i - 1] < ids[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        call, " got the id ", ids[i], " after ", ids[i - 1], "; sort the ids, and give each once"));
  }
  return absl::OkStatus();
}

absl::Status CheckNotEmpty(absl::string_view set_tables, const Layout& layout) {
  if (!layout.ranges().empty() || !layout.tables().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model has neither tensors nor tables, expected at least one of either; "
                   "give it tensors, or call ",
                   set_tables, " first"));
}

absl::Status NoNameError(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the name of ", what, " is NULL, expected a text"));
}

absl::Duration DurationOf(double seconds) {
  return seconds < 0 ? absl::InfiniteDuration() : absl::Seconds(seconds);
}

absl::StatusOr<OptimizerConfig> ConfigOf(const sluice_optimizer& optimizer) {
  auto options = NamedOptions(optimizer.name, optimizer.options, optimizer.option_count);
  if (!options.ok()) return options.status();
  OptimizerConfig config = {*options};
  for (size_t i = 0; i < optimizer.group_count; ++i) {
    const sluice_group& group = optimizer.groups[i];
    options = NamedOptions(optimizer.name, group.options, group.option_count);
    if (!options.ok()) return options.status();
    const char* const* const end = group.parameters + group.parameter_count;
    if (std::find(group.parameters, end, nullptr) != end) return NoNameError("a group's parameter");
    config.groups.push_back({{group.parameters, end}, *options});
  }
  const absl::Status valid = Validate(config);
  if (!valid.ok()) return valid;
  return config;
}

absl::Status NoteOptions(const OptimizerConfig& first, size_t group,
                         absl::Span<const sluice_option> options, ChangedOptions::Groups* changed) {
  if (group > first.groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat("sluice_set_options() got group ", group,
                                                   ", the optimizer has ", first.groups.size(),
                                                   " groups, which are counted from 1"));
  }
  const auto place = static_cast<uint32_t>(group);
  const OptimizerOptions& own = OptionsOf(first, nullptr, place);
  const auto before = changed->find(place);
  OptimizerOptions current = before == changed->end() ? own : before->second;
  std::map<std::string, double> values;
  for (const OptionRef& option : OptionsOf(current)) values[option.info.name] = option.value();
  auto now = NamedOptions(OptimizerName(current), options, std::move(values));
  if (!now.ok()) return now.status();
  absl::Status fits = CheckChanged(first, ShareOptions({{place, *now}}));
  if (!fits.ok()) return fits;
  changed->erase(place);
  if (FirstDifference(own, *now).has_value()) changed->emplace(place, *std::move(now));
  return fits;
}

absl::StatusOr<Layout> LayoutOf(const sluice_model& model) {
  std::vector<LayoutRange> ranges;
  uint64_t offset = 0;
  for (size_t i = 0; i < model.count; ++i) {
    const sluice_tensor& tensor = model.tensors[i];
    if (tensor.name == nullptr) return NoNameError("a tensor");
    if (tensor.dimensions > Layout::kMaxDimensions) {
      return absl::InvalidArgumentError(absl::StrCat(Shown(tensor.name), " has ", tensor.dimensions,
                                                     " dimensions, expected at most ",
                                                     Layout::kMaxDimensions));
    }
    const auto kind = KindOf(tensor);
    if (!kind.ok()) return kind.status();
    const auto type = TypeOf(tensor);
    if (!type.ok()) return type.status();
    LayoutRange range = {
        tensor.name, {tensor.shape, tensor.shape + tensor.dimensions}, *kind, *type, offset, 1};
    // A product that does not fit 64 bits is not the length; Layout::Create() finds that.
    for (const uint32_t size : range.shape) range.length *= size;
    offset += range.length;
    ranges.push_back(std::move(range));
  }
  if (ranges.empty()) return Layout();  // tables may follow: see CheckNotEmpty()
  return Layout::Create(std::move(ranges));
}

absl::Status AddTables(absl::Span<const sluice_table> tables, Layout* layout,
                       OptimizerConfig* config) {
  std::vector<TableSpec> specs;
  OptimizerConfig with_tables = *config;
  for (const sluice_table& table : tables) {
    auto spec = SpecOf(table);
    if (!spec.ok()) return spec.status();
    specs.push_back(*std::move(spec));
    if (table.optimizer == nullptr) continue;
    auto options = NamedOptions(table.optimizer, table.options, table.option_count);
    if (!options.ok()) return options.status();
    with_tables.tables.push_back({table.name, *options});
  }
  auto with_specs = Layout::Create(layout->ranges(), std::move(specs), layout->constants());
  if (!with_specs.ok()) return with_specs.status();
  absl::Status sound = Validate(with_tables);
  if (sound.ok()) sound = CheckFits(with_tables, *with_specs);
  if (!sound.ok()) return sound;
  *layout = *std::move(with_specs);
  *config = std::move(with_tables);
  return absl::OkStatus();
}

absl::Status AddConstants(absl::Span<const sluice_constant> constants, Layout* layout,
                          ConstantMemory* memory) {
  std::vector<ConstantTensor> tensors;
  for (const sluice_constant& constant : constants) {
    if (constant.name == nullptr || constant.type == nullptr) {
      return NoNameError(constant.name == nullptr ? "a constant" : "a constant's type");
    }
    tensors.push_back(
        {constant.name, {constant.shape, constant.shape + constant.dimensions}, constant.type});
  }
  auto with_constants = Layout::Create(layout->ranges(), layout->tables(), std::move(tensors));
  if (!with_constants.ok()) return with_constants.status();
  memory->clear();
  for (size_t i = 0; i < constants.size(); ++i) {
    const uint64_t bytes = with_constants->constants()[i].bytes();
    if (constants[i].data == nullptr && bytes > 0) {
      return absl::InvalidArgumentError(absl::StrCat("the data of the constant ",
                                                     Shown(constants[i].name),
                                                     " is NULL, expected ", bytes, " bytes"));
    }
    memory->emplace_back(static_cast<char*>(constants[i].data), bytes);
  }
  *layout = *std::move(with_constants);
  return absl::OkStatus();
}

}  // namespace sluice
