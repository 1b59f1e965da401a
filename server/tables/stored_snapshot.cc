#include "server/tables/stored_snapshot.h"

#include <algorithm>
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
  for (const IdsOfBucket& of_bucket : ByBucket(ids, store_->place())) {
    wanted.clear();
    for (const uint32_t i : of_bucket.places) wanted.push_back({ids[i], to.data() + i * width});
    store_->bucket(table, of_bucket.bucket).Read(step_.value(), wanted);
  }
}

void StoredSnapshot::Find(uint32_t table, RowId id,
                          absl::FunctionRef<void(const StoredRow&)> take) const {
  const uint32_t bucket = BucketOf(id);
  if (!store_->place().Holds(bucket)) return;
  std::vector<float> elements(store_->table(table).shape.elements());
  Take(table, bucket, {id}, Step(), absl::MakeSpan(elements), take);
}

void StoredSnapshot::ForEachRow(uint32_t table, uint32_t bucket, Step after,
                                absl::FunctionRef<void(const StoredRow&)> take) const {
  if (!store_->place().Holds(bucket)) return;
  const std::vector<RowId> ids = store_->bucket(table, bucket).IdsAt(step_.value());
  std::vector<float> elements(std::min(kRowsAtOnce, ids.size()) *
                              store_->table(table).shape.elements());
  for (size_t begin = 0; begin < ids.size(); begin += kRowsAtOnce) {
    Take(table, bucket, absl::MakeConstSpan(ids).subspan(begin, kRowsAtOnce), after,
         absl::MakeSpan(elements), take);
  }
}

void StoredSnapshot::Take(uint32_t table, uint32_t bucket, absl::Span<const RowId> ids, Step after,
                          absl::Span<float> elements,
                          absl::FunctionRef<void(const StoredRow&)> take) const {
  const size_t size = store_->table(table).shape.elements();
  const std::vector<FoundRow> found =
      store_->bucket(table, bucket).FindAt(step_.value(), ids, elements);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (found[i].as == StoredAs::kAbsent || found[i].touched <= after.value()) continue;
    StoredRow row = {ids[i], Step(found[i].touched), found[i].touches, {}};
    if (found[i].as == StoredAs::kRow) row.elements = elements.subspan(i * size, size);
    take(row);
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
