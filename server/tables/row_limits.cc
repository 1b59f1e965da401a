#include "server/tables/row_limits.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status TooManyRows(const TableSpec& table, uint64_t rows, uint64_t more) {
  return MakeError(
      Reason::kTableFull,
      absl::StrCat("table \"", Shown(table.name), "\" has ", rows, " rows on this server, and the ",
                   more, " new ones of the push would be more than its max_rows, ", table.max_rows,
                   "; raise max_rows, let evict_after remove rows, or use more servers"));
}

// What to do where there is too little memory.
const char* Remedy(const RowMemory& memory) {
  if (memory.file() == nullptr) {
    return "give the server more memory or a disk (--max-table-memory, --table-dir), let "
           "evict_after remove rows, or use more servers";
  }
  return memory.spills() ? "that is the index of rows, which stays in memory: give the server more "
                           "(--max-table-memory), let evict_after remove rows, or use more servers"
                         : "make room on the disk of --table-dir, which cannot be written";
}

absl::Status TooManyBytes(const TableSpec& table, uint64_t bytes, uint64_t more, uint64_t most,
                          const RowMemory& memory) {
  return MakeError(
      Reason::kTableFull,
      absl::StrCat("the tables take ", bytes, " bytes on this server, and the new rows of the push",
                   ", up to those of table \"", Shown(table.name), "\", would take ", more,
                   " more, but there is room for ", most, "; ", Remedy(memory)));
}

}  // namespace

RowGrowth RowLimits::Bound(const RowIds& rows) const {
  const uint64_t elements = store_->table(rows.table).shape.elements();
  const uint64_t count = rows.ids.size();
  return {count, count, 0, count * RecordPages::BytesOf(elements), count * kWaitingBytes};
}

RowGrowth RowLimits::Count(const RowIds& rows) const {
  RowGrowth growth;
  std::vector<RowId> ids;
  for (const IdsOfBucket& of_bucket : IdsByBucket(rows.ids, store_->place())) {
    ids.clear();
    for (const uint32_t i : of_bucket.places) ids.push_back(rows.ids[i]);
    const RowGrowth more = store_->bucket(rows.table, of_bucket.bucket).CountNew(ids);
    growth.rows += more.rows;
    growth.waiting += more.waiting;
    growth.record_bytes += more.record_bytes;
    growth.index_bytes += more.index_bytes;
  }
  return growth;
}

template <typename GrowthOf>
absl::Status RowLimits::CheckGrowth(const StagedRows& rows, const GrowthOf& growth_of) const {
  const RowMemory& memory = store_->memory();
  // Records make room for others where there is a disk, but the index stays.
  const uint64_t before = memory.spills() ? memory.index_bytes.load() : memory.bytes.load();
  const uint64_t most_bytes = memory.spills() ? memory.most_index_bytes() : memory.most_bytes();
  uint64_t more_bytes = 0;
  for (const RowIds& entry : rows.ids()) {
    const TableRows& table = store_->table(entry.table);
    const uint64_t stored = table.counts.rows.load(std::memory_order_relaxed);
    const RowGrowth growth = growth_of(entry);
    const uint64_t most = table.shape.spec.max_rows;
    if (most > 0 && growth.rows > 0 && stored + growth.rows > most) {
      return TooManyRows(table.shape.spec, stored, growth.rows);
    }
    more_bytes += growth.index_bytes + (memory.spills() ? 0 : growth.record_bytes);
    if (more_bytes > 0 && before + more_bytes > most_bytes) {
      return TooManyBytes(table.shape.spec, before, more_bytes, most_bytes, memory);
    }
  }
  return absl::OkStatus();
}

absl::Status RowLimits::CheckPlace(const StagedRows& rows) const {
  for (const RowIds& entry : rows.ids()) {
    for (const RowId id : entry.ids) {
      if (store_->place().Holds(BucketOf(id))) continue;
      return RowOfAnotherServer(store_->table(entry.table).shape.spec, id);
    }
  }
  return absl::OkStatus();
}

absl::Status RowLimits::Check(const StagedRows& rows) const {
  const absl::Status place = CheckPlace(rows);
  if (!place.ok()) return place;
  const absl::Status fits = CheckGrowth(rows, [this](const RowIds& entry) { return Bound(entry); });
  if (fits.ok()) return fits;
  return CheckGrowth(rows, [this](const RowIds& entry) { return Count(entry); });
}

}  // namespace sluice
