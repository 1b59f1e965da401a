#include "worker/client/cached_rows.h"

#include <algorithm>

namespace sluice {

std::vector<RowIds> NotIn(RowCache& cache, const std::vector<RowIds>& rows, Step now) {
  std::vector<RowIds> missing;
  for (const RowIds& of_table : rows) {
    RowIds lacks = {of_table.table, {}};
    for (const RowId id : of_table.ids) {
      if (cache.Find(of_table.table, id, now) == nullptr) lacks.ids.push_back(id);
    }
    if (!lacks.ids.empty()) missing.push_back(std::move(lacks));
  }
  return missing;
}

RowsSent::RowsSent(const std::vector<RowPull::Part>& parts, absl::Span<const float> rows)
    : rows_(rows) {
  for (const RowPull::Part& part : parts) {
    for (const RowIds& of_table : part.rows) {
      for (const RowId id : of_table.ids) names_.emplace_back(of_table.table, id);
    }
  }
}

const float* RowsSent::Take(uint32_t table, RowId id, uint32_t width) {
  if (next_ == names_.size() || names_[next_] != std::make_pair(table, id)) return nullptr;
  ++next_;
  const float* const row = rows_.data();
  rows_.remove_prefix(width);
  return row;
}

RowGaps FillRows(const std::vector<RowIds>& rows, RowsSent sent, RowCache& cache, Step now,
                 absl::Span<float> to) {
  RowGaps gaps;
  for (const RowIds& of_table : rows) {
    const uint32_t width = cache.width(of_table.table);
    RowIds missing = {of_table.table, {}};
    for (const RowId id : of_table.ids) {
      const float* row = sent.Take(of_table.table, id, width);
      if (row == nullptr) row = cache.Find(of_table.table, id, now);
      if (row == nullptr) {
        missing.ids.push_back(id);
        gaps.places.push_back(to.first(width));
      } else {
        std::copy_n(row, width, to.begin());
      }
      to.remove_prefix(width);
    }
    if (!missing.ids.empty()) gaps.rows.push_back(std::move(missing));
  }
  return gaps;
}

}  // namespace sluice
