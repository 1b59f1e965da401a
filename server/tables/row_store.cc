#include "server/tables/row_store.h"

#include <array>

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
std::vector<IdsOfBucket> ByBucket(absl::Span<const RowId> ids, const RowPlace& place) {
  std::array<uint32_t, kRowBuckets> counts = {};
  for (const RowId id : ids) ++counts[BucketOf(id)];
  std::array<std::vector<uint32_t>*, kRowBuckets> places = {};
  std::vector<IdsOfBucket> grouped;
  grouped.reserve(kRowBuckets);
  for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
    if (counts[bucket] == 0 || !place.Holds(bucket)) continue;
    grouped.push_back({bucket, {}});
    places[bucket] = &grouped.back().places;
    places[bucket]->reserve(counts[bucket]);
  }
  for (uint32_t i = 0; i < ids.size(); ++i) {
    std::vector<uint32_t>* const to = places[BucketOf(ids[i])];
    if (to != nullptr) to->push_back(i);
  }
  return grouped;
}

}  // namespace sluice
