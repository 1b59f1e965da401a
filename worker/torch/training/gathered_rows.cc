#include "worker/torch/training/gathered_rows.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/encoding/checksum.h"

namespace sluice {

class GatheredRows::Held final : public PendingRows {
 public:
  Held(std::shared_ptr<GatheredRows> owner, uint32_t table, std::vector<RowId> ids)
      : owner_(std::move(owner)), table_(table), ids_(std::move(ids)) {}

  void Read(absl::Span<float> rows) override { owner_->Read(table_, ids_, rows); }

 private:
  const std::shared_ptr<GatheredRows> owner_;
  const uint32_t table_;
  const std::vector<RowId> ids_;
};

std::unique_ptr<PendingRows> GatheredRows::Start(uint32_t table, const std::vector<RowId>& ids) {
  if (notes_) noted_.at(table).insert(noted_.at(table).end(), ids.begin(), ids.end());
  return std::make_unique<Held>(shared_from_this(), table, ids);
}

void GatheredRows::EndNotes() {
  notes_ = false;
  size_t elements = 0;
  for (uint32_t table = 0; table < tables_.size(); ++table) {
    std::vector<RowId>& ids = noted_[table];
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    begins_[table] = elements;
    elements += ids.size() * tables_[table].width;
    if (!ids.empty()) wanted_.push_back({table, ids});
  }
  values_.assign(elements, 0);
}

size_t GatheredRows::PlaceOf(uint32_t table, RowId id) const {
  const std::vector<RowId>& ids = noted_[table];
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  if (found == ids.end() || *found != id) return values_.size();
  return begins_[table] + static_cast<size_t>(found - ids.begin()) * tables_[table].width;
}

void GatheredRows::Read(uint32_t table, const std::vector<RowId>& ids, absl::Span<float> rows) {
  if (notes_) {
    std::fill(rows.begin(), rows.end(), 0);
    return;
  }
  auto to = rows.begin();
  const uint32_t width = tables_[table].width;
  for (const RowId id : ids) {
    const size_t place = PlaceOf(table, id);
    if (place == values_.size()) {
      throw std::logic_error(absl::StrCat(
          "the test looks up row ", id, " of table \"", tables_[table].name,
          "\", which it did not look up at first; which rows it needs must not depend on values"));
    }
    to = std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(place), width, to);
  }
}

void GatheredRows::SetFirst() {
  for (const RowIds& of_table : wanted_) {
    const TableSpec& table = tables_[of_table.table];
    const uint64_t key = InitializerKey(table.initializer, Checksum(table.name));
    absl::Span<float> rows = values().subspan(begins_[of_table.table]);
    for (const RowId id : of_table.ids) {
      InitializeRow(table.initializer, key, id, rows.first(table.width));
      rows.remove_prefix(table.width);
    }
  }
}

void GatheredRows::Set(uint32_t table, RowId id, absl::Span<const float> row) {
  if (table >= tables_.size() || row.size() != tables_[table].width) return;
  const size_t place = PlaceOf(table, id);
  if (place == values_.size()) return;
  std::copy(row.begin(), row.end(), values_.begin() + static_cast<std::ptrdiff_t>(place));
}

}  // namespace sluice
