#include "common/wire/layout.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/little_endian.h"
#include "common/wire/field.h"
#include "common/wire/words.h"

namespace sluice {
namespace {

constexpr Word<RangeKind, v1::RangeKind> kRangeKinds[] = {{RangeKind::kParameter, v1::PARAMETER},
                                                          {RangeKind::kStatistic, v1::STATISTIC}};
constexpr Word<DataType, v1::DataType> kDataTypes[] = {{DataType::kFloat32, v1::FLOAT32},
                                                       {DataType::kFloat64, v1::FLOAT64},
                                                       {DataType::kFloat16, v1::FLOAT16},
                                                       {DataType::kBFloat16, v1::BFLOAT16},
                                                       {DataType::kInt64, v1::INT64}};
constexpr Word<RowInitializerKind, v1::RowInitializerKind> kInitializers[] = {
    {RowInitializerKind::kZero, v1::ZERO_ROWS},
    {RowInitializerKind::kUniform, v1::UNIFORM_ROWS},
    {RowInitializerKind::kNormal, v1::NORMAL_ROWS}};
constexpr Word<RowDivisor, v1::RowDivisor> kDivisors[] = {
    {RowDivisor::kAllContributors, v1::ALL_CONTRIBUTORS},
    {RowDivisor::kRowContributors, v1::ROW_CONTRIBUTORS}};

absl::Status BadRange(const v1::LayoutRange& range, absl::string_view field, int found,
                      absl::string_view expected) {
  return MakeError(Reason::kBadLayout, absl::StrCat("range \"", Shown(range.name()), "\" has ",
                                                    field, " ", found, ", expected ", expected));
}

absl::Status BadTable(const v1::Table& table, absl::string_view field, int found,
                      absl::string_view expected) {
  return MakeError(Reason::kBadLayout, absl::StrCat("table \"", Shown(table.name()), "\" has ",
                                                    field, " ", found, ", expected ", expected));
}

absl::StatusOr<LayoutRange> RangeFromProto(const v1::LayoutRange& from) {
  const RangeKind* const kind = ToOurs(kRangeKinds, from.kind());
  if (kind == nullptr) return BadRange(from, "kind", from.kind(), "PARAMETER or STATISTIC");
  const DataType* const dtype = ToOurs(kDataTypes, from.dtype());
  if (dtype == nullptr) {
    return BadRange(from, "dtype", from.dtype(), "FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or INT64");
  }
  LayoutRange range;
  range.name = from.name();
  range.shape.assign(from.shape().begin(), from.shape().end());
  range.kind = *kind;
  range.dtype = *dtype;
  range.offset = from.offset();
  range.length = from.length();
  return range;
}

absl::StatusOr<TableSpec> TableFromProto(const v1::Table& from) {
  const RowInitializerKind* const kind = ToOurs(kInitializers, from.initializer().kind());
  if (kind == nullptr) {
    return BadTable(from, "initializer.kind", from.initializer().kind(),
                    "ZERO_ROWS, UNIFORM_ROWS or NORMAL_ROWS");
  }
  const RowDivisor* const divisor = ToOurs(kDivisors, from.divisor());
  if (divisor == nullptr) {
    return BadTable(from, "divisor", from.divisor(), "ALL_CONTRIBUTORS or ROW_CONTRIBUTORS");
  }
  TableSpec table;
  table.name = from.name();
  table.width = from.width();
  table.initializer = {*kind, from.initializer().scale(), from.initializer().seed()};
  table.divisor = *divisor;
  table.admit_after = from.admit_after();
  table.evict_after = from.evict_after();
  table.max_rows = from.max_rows();
  return table;
}

}  // namespace

absl::StatusOr<Layout> FromProto(const v1::Layout& message) {
  // Check before allocating memory for the ranges.
  const size_t count = message.ranges_size();
  if (count > Layout::kMaxRanges) {
    return MakeError(
        Reason::kBadLayout,
        absl::StrCat("the layout has ", count, " ranges, expected 1 to ", Layout::kMaxRanges));
  }
  std::vector<LayoutRange> ranges;
  ranges.reserve(count);
  for (const v1::LayoutRange& from : message.ranges()) {
    auto range = RangeFromProto(from);
    if (!range.ok()) return range.status();
    ranges.push_back(*std::move(range));
  }
  if (message.tables_size() > static_cast<int>(TableSpec::kMaxTables)) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", message.tables_size(),
                                  " tables, expected at most ", TableSpec::kMaxTables));
  }
  std::vector<TableSpec> tables;
  tables.reserve(message.tables_size());
  for (const v1::Table& from : message.tables()) {
    auto table = TableFromProto(from);
    if (!table.ok()) return table.status();
    tables.push_back(*std::move(table));
  }
  if (message.constants_size() > static_cast<int>(Layout::kMaxConstants)) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", message.constants_size(),
                                  " constants, expected at most ", Layout::kMaxConstants));
  }
  std::vector<ConstantTensor> constants;
  constants.reserve(message.constants_size());
  for (const v1::ConstantTensor& from : message.constants()) {
    constants.push_back({from.name(), {from.shape().begin(), from.shape().end()}, from.dtype()});
  }
  return Layout::Create(std::move(ranges), std::move(tables), std::move(constants));
}

v1::LayoutRange ToProto(const LayoutRange& range) {
  v1::LayoutRange message;
  message.set_name(range.name);
  for (const uint32_t dimension : range.shape) message.add_shape(dimension);
  message.set_kind(ToTheirs(kRangeKinds, range.kind));
  message.set_dtype(ToTheirs(kDataTypes, range.dtype));
  message.set_offset(range.offset);
  message.set_length(range.length);
  return message;
}

v1::Table ToProto(const TableSpec& table) {
  v1::Table message;
  message.set_name(table.name);
  message.set_width(table.width);
  v1::RowInitializer& initializer = *message.mutable_initializer();
  initializer.set_kind(ToTheirs(kInitializers, table.initializer.kind));
  initializer.set_scale(table.initializer.scale);
  initializer.set_seed(table.initializer.seed);
  message.set_divisor(ToTheirs(kDivisors, table.divisor));
  message.set_admit_after(table.admit_after);
  message.set_evict_after(table.evict_after);
  message.set_max_rows(table.max_rows);
  return message;
}

v1::Layout ToProto(const Layout& layout) {
  v1::Layout message;
  for (const LayoutRange& range : layout.ranges()) *message.add_ranges() = ToProto(range);
  for (const TableSpec& table : layout.tables()) *message.add_tables() = ToProto(table);
  for (const ConstantTensor& constant : layout.constants()) {
    v1::ConstantTensor& to = *message.add_constants();
    to.set_name(constant.name);
    to.mutable_shape()->Add(constant.shape.begin(), constant.shape.end());
    to.set_dtype(constant.dtype);
  }
  return message;
}

v1::RowIds ToProto(const RowIds& rows) {
  v1::RowIds message;
  message.set_table(rows.table);
  message.mutable_ids()->resize(rows.ids.size() * sizeof(RowId));
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    PutLittleEndian(rows.ids[i], &(*message.mutable_ids())[i * sizeof(RowId)]);
  }
  return message;
}

absl::StatusOr<RowIds> FromProto(const v1::RowIds& message, const Layout& layout) {
  const std::string& bytes = message.ids();
  if (message.table() >= layout.tables().size()) {
    return BadField(
        "rows.table", absl::StrCat(message.table()),
        absl::StrCat("less than ", layout.tables().size(), ", the number of tables in the layout"));
  }
  if (bytes.size() % sizeof(RowId) != 0 || bytes.size() > kMaxIdBytes) {
    return BadField("rows.ids", absl::StrCat(bytes.size(), " bytes"),
                    absl::StrCat("a multiple of 8, at most ", kMaxIdBytes));
  }
  RowIds rows;
  rows.table = message.table();
  rows.ids.resize(bytes.size() / sizeof(RowId));
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    rows.ids[i] = FromLittleEndian<RowId>(absl::string_view(bytes).substr(i * sizeof(RowId)));
    if (i == 0 || rows.ids[i - 1] < rows.ids[i]) continue;
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("the ids of table \"", Shown(layout.tables()[rows.table].name), "\" have ",
                     rows.ids[i], " after ", rows.ids[i - 1], "; sort them, and send each once"));
  }
  return rows;
}

}  // namespace sluice
