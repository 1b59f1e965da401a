#include "worker/client/row_cache.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr uint64_t kMostRows = std::numeric_limits<uint32_t>::max();

}  // namespace

absl::Status CheckSuits(const RowCacheOptions& options, ConsistencyMode mode) {
  const bool fresh = mode == ConsistencyMode::kSync || mode == ConsistencyMode::kBackup;
  if (options.max_age == 0 || !fresh) return absl::OkStatus();
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("--row-cache=", options.max_age, " with --mode=", ConsistencyModeName(mode),
                   ", in which all rows are of the worker's step; leave it out, or "
                   "choose async, ssp or bounded"));
}

RowCache::RowCache(const std::vector<TableSpec>& tables, const RowCacheOptions& options)
    : max_age_(options.max_age) {
  for (const TableSpec& spec : tables) {
    Table table;
    table.width = spec.width;
    const uint64_t row = sizeof(float) * spec.width + sizeof(Place);
    table.most = static_cast<size_t>(std::min(options.max_bytes / tables.size() / row, kMostRows));
    tables_.push_back(std::move(table));
  }
}

void RowCache::Use(Incarnation incarnation) {
  if (incarnation == incarnation_) return;
  incarnation_ = incarnation;
  for (Table& table : tables_) {
    table.place_of.clear();
    table.places.clear();
    table.rows.clear();
    table.hand = 0;
  }
}

const float* RowCache::Find(uint32_t table, RowId id, Step now) {
  Table& in = tables_[table];
  const auto found = in.place_of.find(id);
  if (found == in.place_of.end()) return nullptr;
  Place& place = in.places[found->second];
  if (place.step < now && now.value() - place.step.value() > max_age_) return nullptr;
  place.found = true;
  return in.rows.data() + size_t{found->second} * in.width;
}

// The place of the row, or one that it takes.
uint32_t RowCache::TakePlace(Table& table, RowId id) {
  const auto own = table.place_of.find(id);
  if (own != table.place_of.end()) return own->second;
  if (table.places.size() < table.most) {
    table.places.emplace_back();
    table.rows.resize(table.rows.size() + table.width);
    return table.place_of[id] = static_cast<uint32_t>(table.places.size() - 1);
  }
  const auto next = [&table] { table.hand = (table.hand + 1) % table.places.size(); };
  for (; table.places[table.hand].found; next()) table.places[table.hand].found = false;
  const auto place = static_cast<uint32_t>(table.hand);
  next();
  table.place_of.erase(table.places[place].id);
  return table.place_of[id] = place;
}

void RowCache::Put(uint32_t table, absl::Span<const RowId> ids, absl::Span<const float> rows,
                   Step step) {
  Table& in = tables_[table];
  if (in.most == 0) return;
  for (const RowId id : ids) {
    const uint32_t place = TakePlace(in, id);
    in.places[place] = {id, step, false};
    std::copy_n(rows.begin(), in.width, in.rows.begin() + static_cast<ptrdiff_t>(place) * in.width);
    rows.remove_prefix(in.width);
  }
}

}  // namespace sluice
