// The rows of all tables that a server holds, at one step. server/tables makes them.

#ifndef SLUICE_SERVER_SNAPSHOTS_ROW_SNAPSHOT_H_
#define SLUICE_SERVER_SNAPSHOTS_ROW_SNAPSHOT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/checkpoint/saved_rows.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// Immutable for its readers, although later steps change the tables. Any thread may call any
// method. A table is named by its index in the layout.
class RowSnapshot {
 public:
  virtual ~RowSnapshot() = default;

  // Whether the row of `id` is of this server's buckets, whether it exists or not.
  virtual bool Holds(RowId id) const = 0;

  // Copies the rows of `ids` to `to`, one after the other. Rows that do not exist have their first
  // values. `ids` are of this server's buckets, in any order.
  virtual void Read(uint32_t table, absl::Span<const RowId> ids, absl::Span<float> to) const = 0;

  // Calls `take` with the row or waiting id, if it exists and is of this server's buckets.
  virtual void Find(uint32_t table, RowId id,
                    absl::FunctionRef<void(const StoredRow&)> take) const = 0;

  // Calls `take` for the rows and waiting ids of a bucket that were touched after step `after`, in
  // ascending order of id. It takes a time that grows with the bucket. A row's elements are valid
  // until `take` returns.
  virtual void ForEachRow(uint32_t table, uint32_t bucket, Step after,
                          absl::FunctionRef<void(const StoredRow&)> take) const = 0;

  // Calls `take` for the ids of a bucket that were removed after step `after`, at least once for
  // each, in no order. An id may exist again: then ForEachRow() has it, too. Removals before
  // RowTables::ForgetRemovals() are not known any more.
  virtual void ForEachRemoved(uint32_t table, uint32_t bucket, Step after,
                              absl::FunctionRef<void(RowId)> take) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_ROW_SNAPSHOT_H_
