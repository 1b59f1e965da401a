#include "server/durable/journal/row_sums_format.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/number_bytes.h"

namespace sluice {
namespace {

// Of a row in a table of that width: the id, the sums and the share.
uint64_t BytesOfRowSum(uint64_t width) {
  return sizeof(RowId) + width * sizeof(float) + sizeof(float);
}

bool Ascends(const std::vector<RowId>& ids) {
  return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

absl::Status NotTheRows(uint64_t bytes) {
  return absl::DataLossError(
      absl::StrCat("has ", bytes, " bytes of rows, which are not those that its state counts"));
}

}  // namespace

std::vector<uint32_t> WidthsOf(const Layout& layout) {
  std::vector<uint32_t> widths;
  for (const TableSpec& table : layout.tables()) widths.push_back(table.width);
  return widths;
}

std::vector<TableCount> CountsOf(absl::Span<const TableSums> rows) {
  std::vector<TableCount> counts;
  for (const TableSums& table : rows) {
    if (!table.ids.empty()) counts.push_back({table.table, table.ids.size()});
  }
  return counts;
}

std::string EncodeRowSums(absl::Span<const TableSums> rows) {
  uint64_t size = 0;
  for (const TableSums& table : rows) {
    size += NumberBytes(table.ids).size() + NumberBytes(table.sums).size() +
            NumberBytes(table.shares).size();
  }
  std::string bytes;
  bytes.reserve(size);
  for (const TableSums& table : rows) {
    absl::StrAppend(&bytes, NumberBytes(table.ids), NumberBytes(table.sums),
                    NumberBytes(table.shares));
  }
  return bytes;
}

absl::StatusOr<std::vector<TableSums>> DecodeRowSums(absl::Span<const TableCount> counts,
                                                     absl::Span<const uint32_t> widths,
                                                     absl::string_view bytes) {
  const uint64_t all = bytes.size();
  std::vector<TableSums> rows;
  for (const TableCount& count : counts) {
    const bool next = rows.empty() || rows.back().table < count.table;
    if (count.table >= widths.size() || !next) {
      return absl::DataLossError(absl::StrCat("has rows of table ", count.table,
                                              ", expected tables below ", widths.size(),
                                              ", in their order"));
    }
    const uint64_t width = widths[count.table];
    if (count.rows == 0 || count.rows > bytes.size() / BytesOfRowSum(width)) return NotTheRows(all);
    TableSums table;
    table.table = count.table;
    table.ids = TakeNumbers<RowId>(count.rows, &bytes);
    table.sums = TakeNumbers<float>(count.rows * width, &bytes);
    table.shares = TakeNumbers<float>(count.rows, &bytes);
    if (!Ascends(table.ids)) {
      return absl::DataLossError(
          absl::StrCat("has ids of table ", count.table, " that are not in ascending order"));
    }
    rows.push_back(std::move(table));
  }
  if (!bytes.empty()) return NotTheRows(all);
  return rows;
}

}  // namespace sluice
