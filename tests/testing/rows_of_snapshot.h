// The rows of a snapshot, as those of a checkpoint.

#ifndef SLUICE_TESTS_TESTING_ROWS_OF_SNAPSHOT_H_
#define SLUICE_TESTS_TESTING_ROWS_OF_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/checkpoint/saved_rows.h"
#include "server/snapshots/snapshot_store.h"

namespace sluice {

class RowsOfSnapshot final : public SavedRows {
 public:
  RowsOfSnapshot(std::shared_ptr<const RowSnapshot> rows, size_t tables)
      : rows_(std::move(rows)), tables_(static_cast<uint32_t>(tables)) {}

  absl::Status ForEach(
      absl::FunctionRef<void(uint32_t table, const StoredRow& row)> take) const override {
    for (uint32_t table = 0; table < tables_; ++table) {
      for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
        rows_->ForEachRow(table, bucket, Step(), [&](const StoredRow& row) { take(table, row); });
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const RowSnapshot> rows_;
  const uint32_t tables_;
};

// Null if it has no rows.
inline std::shared_ptr<const SavedRows> RowsOf(const Snapshot& snapshot, size_t tables) {
  if (snapshot.rows == nullptr) return nullptr;
  return std::make_shared<const RowsOfSnapshot>(snapshot.rows, tables);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_ROWS_OF_SNAPSHOT_H_
