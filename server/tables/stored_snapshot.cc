#include "server/tables/stored_snapshot.h"

#include <utility>
#include <vector>

#include "server/tables/stages.h"

namespace sluice {
namespace {

// Rows that are copied under one lock of their bucket.
constexpr size_t kRowsAtOnce = 256;

// Rows that are asked for while as many others are copied.
constexpr size_t kRowsOfPart = 32;

// Some of the ids that a reader wants of a bucket.
struct Part {
  const RowBucket* bucket = nullptr;
  size_t begin = 0;
  size_t size = 0;
};

}  // namespace

StoredSnapshot::StoredSnapshot(std::shared_ptr<const RowStore> store, Step step)
    : store_(std::move(store)), step_(step) {
  store_->history().Hold(step_.value());
}

StoredSnapshot::~StoredSnapshot() { store_->history().Release(step_.value()); }

void StoredSnapshot::Read(uint32_t table, absl::Span<const RowId> ids, absl::Span<float> to) const {
  const size_t width = store_->table(table).shape.width();
  std::vector<RowId> wanted;
  std::vector<float*> places;
  std::vector<Part> parts;
  wanted.reserve(ids.size());
  places.reserve(ids.size());
  for (const IdsOfBucket& of_bucket : IdsByBucket(ids, store_->place())) {
    const RowBucket& bucket = store_->bucket(table, of_bucket.bucket);
    for (size_t i = 0; i < of_bucket.places.size(); ++i) {
      if (i % kRowsOfPart == 0) parts.push_back({&bucket, wanted.size(), 0});
      ++parts.back().size;
      wanted.push_back(ids[of_bucket.places[i]]);
      places.push_back(to.data() + of_bucket.places[i] * width);
    }
  }
  const auto ids_of = [&](size_t i) {
    return absl::MakeConstSpan(wanted).subspan(parts[i].begin, parts[i].size);
  };
  size_t absent = 0;
  InStages(
      0, parts.size(), [&](size_t i) { parts[i].bucket->FetchHead(); },
      [&](size_t i) { parts[i].bucket->FetchIndex(ids_of(i)); },
      [&](size_t i) { parts[i].bucket->FetchRows(ids_of(i), width); },
      [&](size_t i) {
        absent += parts[i].bucket->Read(
            step_.value(), ids_of(i),
            absl::MakeConstSpan(places).subspan(parts[i].begin, parts[i].size));
      });
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
