// Tables of rows in a map, for tests of what server/durable saves of them.

#ifndef SLUICE_TESTS_TESTING_DURABLE_ROWS_IN_MEMORY_H_
#define SLUICE_TESTS_TESTING_DURABLE_ROWS_IN_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/saved_rows.h"
#include "common/tensor/layout.h"
#include "server/snapshots/row_snapshot.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// A stored row, which owns its elements.
struct OwnedRow {
  uint64_t touched = 0;
  uint32_t touches = 0;
  std::vector<float> elements;

  friend bool operator==(const OwnedRow& a, const OwnedRow& b) {
    return a.touched == b.touched && a.touches == b.touches && a.elements == b.elements;
  }
};

using RowKey = std::pair<uint32_t, RowId>;  // table and id
using RowMap = std::map<RowKey, OwnedRow>;

class RowsInMemory {
 public:
  // Begins with these rows, of which none is known to be removed.
  explicit RowsInMemory(RowMap rows = {}) : rows_(std::move(rows)) {}

  // A row that a step has made; it may have been there.
  void Make(uint64_t step, RowKey key, std::vector<float> elements);
  // An id that waits for its admission.
  void Wait(uint64_t step, RowKey key, uint32_t touches);
  void Remove(uint64_t step, RowKey key);

  const RowMap& rows() const { return rows_; }
  // What later changes do not change.
  std::shared_ptr<const RowSnapshot> Snapshot() const;

 private:
  RowMap rows_;
  std::vector<std::pair<uint64_t, RowKey>> removed_;  // with the step
};

// The first `count` ids from `first` on that are in this bucket.
std::vector<RowId> IdsInBucket(uint32_t bucket, size_t count, RowId first = 0);

// All rows that are loaded. Fails the test if one comes twice.
absl::StatusOr<RowMap> RowsOfSaved(const SavedRows& saved);

// What the buckets of a server have of these rows.
RowMap RowsOfServer(const RowMap& rows, StripePlace place);

// A layout with a parameter of 3 elements, and the tables "items" of width 2 and "users" of
// width 1.
std::shared_ptr<const Layout> LayoutWithTables();
// Their slots: "items" has Adam's two, "users" has none. So rows have 6 elements and 1.
std::vector<RowSlots> SlotsOfTables();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_ROWS_IN_MEMORY_H_
