#include "server/tables/stored_snapshot.h"

#include <utility>
#include <vector>

namespace sluice {
namespace {

// Rows that are copied under one lock of their bucket.
constexpr size_t kRowsAtOnce = 256;

}  // namespace

StoredSnapshot::StoredSnapshot(std::shared_ptr<const RowStore> store, Step step)
    : store_(std::move(store)), step_(step) {
  store_->history().Hold(step_.value());
}

StoredSnapshot::~StoredSnapshot() { store_->history().Release(step_.value()); }

void StoredSnapshot::Read(uint32_t table, absl::Span<const RowId> ids, absl::Span<float> to) const {
  const size_t width = store_->table(table).shape.width();
  std::vector<WantedRow> wanted;
  size_t absent = 0;
  for (const IdsOfBucket& of_bucket : IdsByBucket(ids, store_->place())) {
    wanted.clear();
    for (const uint32_t i : of_bucket.places) wanted.push_back({ids[i], to.data() + i * width});
    absent += store_->bucket(table, of_bucket.bucket).Read(step_.value(), wanted);
  }
  store_->table(table).reads.Count(ids, absent);
}

void StoredSnapshot::TakeRows(uint32_t table, uint32_t bucket, absl::Span<const RowId> ids,
                              absl::FunctionRef<void(const StoredRow&)> take) const {
  const size_t size = store_->table(table).shape.elements();
  std::vector<float> elements(ids.size() * size);
  const std::vector<FoundRow> found =
      store_->bucket(table, bucket).FindAt(step_.value(), ids, absl::MakeSpan(elements));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (found[i].as == StoredAs::kAbsent) continue;
    StoredRow row = {ids[i], Step(found[i].touched), found[i].touches, {}};
    if (found[i].as == StoredAs::kRow) row.elements = {elements.data() + i * size, size};
    take(row);
  }
}

void StoredSnapshot::Find(uint32_t table, RowId id,
                          absl::FunctionRef<void(const StoredRow&)> take) const {
  const uint32_t bucket = BucketOf(id);
  if (store_->place().Holds(bucket)) TakeRows(table, bucket, {&id, 1}, take);
}

void StoredSnapshot::ForEachRow(uint32_t table, uint32_t bucket, Step after,
                                absl::FunctionRef<void(const StoredRow&)> take) const {
  if (!store_->place().Holds(bucket)) return;
  const std::vector<RowId> ids = store_->bucket(table, bucket).IdsAt(step_.value(), after.value());
  for (size_t begin = 0; begin < ids.size(); begin += kRowsAtOnce) {
    TakeRows(table, bucket, absl::MakeConstSpan(ids).subspan(begin, kRowsAtOnce), take);
  }
}

void StoredSnapshot::ForEachRemoved(uint32_t table, uint32_t bucket, Step after,
                                    absl::FunctionRef<void(RowId)> take) const {
  if (!store_->place().Holds(bucket)) return;
  for (const RowId id : store_->bucket(table, bucket).RemovedAt(step_.value(), after.value())) {
    take(id);
  }
}

}  // namespace sluice
