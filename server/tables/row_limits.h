// How many rows the tables of a server may have.

#ifndef SLUICE_SERVER_TABLES_ROW_LIMITS_H_
#define SLUICE_SERVER_TABLES_ROW_LIMITS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/aggregation/staged_rows.h"
#include "server/tables/row_store.h"

namespace sluice {

// Any thread may call it.
class RowLimits {
 public:
  explicit RowLimits(std::shared_ptr<const RowStore> store) : store_(std::move(store)) {}

  // See RowTables::CheckFits(). Ids are looked up only if the limits would be passed if all of them
  // were new.
  absl::Status Check(const StagedRows& rows) const;

 private:
  absl::Status CheckPlace(const StagedRows& rows) const;
  // An estimate from above, and one that looks up the ids.
  RowGrowth Bound(const RowIds& rows) const;
  RowGrowth Count(const RowIds& rows) const;
  // OK if each of the entries grows as `growth` says without passing a limit.
  template <typename GrowthOf>
  absl::Status CheckGrowth(const StagedRows& rows, const GrowthOf& growth) const;

  const std::shared_ptr<const RowStore> store_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_LIMITS_H_
