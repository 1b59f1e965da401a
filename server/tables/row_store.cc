#include "server/tables/row_store.h"

#include <array>
#include <utility>

namespace sluice {

RowStore::RowStore(std::vector<RowShape> shapes, RowPlace place, const TableMemory& memory)
    : place_(place),
      history_(std::make_unique<RowHistory>()),
      memory_(std::make_unique<RowMemory>(memory, shapes.size() * place.buckets())) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    tables_.push_back(std::make_unique<TableRows>(std::move(shapes[i])));
    TableRows& table = *tables_.back();
    for (size_t at = 0; at < place.buckets(); ++at) {
      table.buckets.push_back(std::make_unique<RowBucket>(table.shape, KeyOf(i, place.BucketAt(at)),
                                                          *history_, *memory_, table.counts));
    }
  }
}

// A counting sort: first how many, then where.
IdsByBucket::IdsByBucket(absl::Span<const RowId> ids, const RowPlace& place) : places_(ids.size()) {
  std::array<uint32_t, kRowBuckets> next = {};
  for (const RowId id : ids) ++next[BucketOf(id)];
  uint32_t end = 0;
  for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
    const uint32_t begin = end;
    end += std::exchange(next[bucket], begin);
    if (end == begin || !place.Holds(bucket)) continue;
    buckets_.push_back({bucket, absl::MakeConstSpan(places_).subspan(begin, end - begin)});
  }
  for (uint32_t i = 0; i < ids.size(); ++i) places_[next[BucketOf(ids[i])]++] = i;
}

}  // namespace sluice
