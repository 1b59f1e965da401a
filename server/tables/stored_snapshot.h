// The rows of a RowStore at one step.

#ifndef SLUICE_SERVER_TABLES_STORED_SNAPSHOT_H_
#define SLUICE_SERVER_TABLES_STORED_SNAPSHOT_H_

#include <memory>

#include "common/base/ids.h"
#include "server/snapshots/row_snapshot.h"
#include "server/tables/row_store.h"

namespace sluice {

// Keeps the store, and in its history what it needs.
class StoredSnapshot final : public RowSnapshot {
 public:
  // `step` is the latest step of the store.
  StoredSnapshot(std::shared_ptr<const RowStore> store, Step step);
  ~StoredSnapshot() override;
  StoredSnapshot(const StoredSnapshot&) = delete;
  StoredSnapshot& operator=(const StoredSnapshot&) = delete;

  bool Holds(RowId id) const override { return store_->place().Holds(BucketOf(id)); }
  void Read(uint32_t table, absl::Span<const RowId> ids, absl::Span<float> to) const override;
  void Find(uint32_t table, RowId id,
            absl::FunctionRef<void(const StoredRow&)> take) const override;
  void ForEachRow(uint32_t table, uint32_t bucket, Step after,
                  absl::FunctionRef<void(const StoredRow&)> take) const override;
  void ForEachRemoved(uint32_t table, uint32_t bucket, Step after,
                      absl::FunctionRef<void(RowId)> take) const override;

 private:
  // Calls `take` for those of `ids`, which are of one bucket, that are stored.
  void TakeRows(uint32_t table, uint32_t bucket, absl::Span<const RowId> ids,
                absl::FunctionRef<void(const StoredRow&)> take) const;

  const std::shared_ptr<const RowStore> store_;
  const Step step_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_STORED_SNAPSHOT_H_
