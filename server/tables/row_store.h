// All rows of one server: its buckets of each table, and the history that snapshots read. The
// tables and their snapshots share it.

#ifndef SLUICE_SERVER_TABLES_ROW_STORE_H_
#define SLUICE_SERVER_TABLES_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/tables/row_bucket.h"
#include "server/tables/row_history.h"
#include "server/tables/row_memory.h"
#include "server/tables/row_reads.h"
#include "server/tables/row_shape.h"

namespace sluice {

// The buckets of one server: those whose number modulo `servers` is `server`.
struct RowPlace {
  uint32_t server = 0;
  uint32_t servers = 1;

  bool Holds(uint32_t bucket) const { return bucket % servers == server; }
  // How many of a table's buckets are here, and where bucket `bucket` is among them.
  size_t buckets() const { return (kRowBuckets + servers - 1 - server) / servers; }
  size_t IndexOf(uint32_t bucket) const { return bucket / servers; }
  uint32_t BucketAt(size_t index) const { return static_cast<uint32_t>(index) * servers + server; }
};

// The rows of one table. Its buckets are externally synchronized as RowBucket says.
struct TableRows {
  explicit TableRows(RowShape table_shape) : shape(std::move(table_shape)) {}

  const RowShape shape;
  RowCounts counts;
  RowReads reads;
  std::vector<std::unique_ptr<RowBucket>> buckets;  // by RowPlace::IndexOf()
};

// The ids of one bucket: their places in a list of ids, in its order.
struct IdsOfBucket {
  uint32_t bucket = 0;
  absl::Span<const uint32_t> places;
};

// A list of ids by bucket: those of `place` that have some, in ascending order. It is made for each
// pull and push, so all places lie in one piece of memory.
class IdsByBucket {
 public:
  IdsByBucket(absl::Span<const RowId> ids, const RowPlace& place);
  IdsByBucket(const IdsByBucket&) = delete;
  IdsByBucket& operator=(const IdsByBucket&) = delete;

  size_t size() const { return buckets_.size(); }
  const IdsOfBucket& operator[](size_t index) const { return buckets_[index]; }
  std::vector<IdsOfBucket>::const_iterator begin() const { return buckets_.begin(); }
  std::vector<IdsOfBucket>::const_iterator end() const { return buckets_.end(); }

 private:
  std::vector<uint32_t> places_;
  std::vector<IdsOfBucket> buckets_;
};

// Immutable, but for the buckets, the history and the memory.
class RowStore {
 public:
  RowStore(std::vector<RowShape> shapes, RowPlace place, const TableMemory& memory);

  const RowPlace& place() const { return place_; }
  size_t tables() const { return tables_.size(); }
  TableRows& table(size_t index) const { return *tables_[index]; }
  RowBucket& bucket(uint32_t table, uint32_t bucket) const {
    return *tables_[table]->buckets[place_.IndexOf(bucket)];
  }
  RowHistory& history() const { return *history_; }
  const RowMemory& memory() const { return *memory_; }

  static uint64_t KeyOf(size_t table, uint32_t bucket) { return table * kRowBuckets + bucket; }

 private:
  const RowPlace place_;
  const std::unique_ptr<RowHistory> history_;
  const std::unique_ptr<RowMemory> memory_;
  std::vector<std::unique_ptr<TableRows>> tables_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_STORE_H_
