// The bytes of the rows' sums in a record of the journal (journal_format.h): for each table that
// the step touches, in the order of the tables, its ids, 8 bytes each; a row of sums for each id,
// float32; and a share for each id, float32. All are little-endian. How many there are is in the
// record's state. Pure functions; any thread may call them.

#ifndef SLUICE_SERVER_DURABLE_JOURNAL_ROW_SUMS_FORMAT_H_
#define SLUICE_SERVER_DURABLE_JOURNAL_ROW_SUMS_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "server/durable/format/saved_state.h"
#include "server/state/table_sums.h"

namespace sluice {

// The widths of the tables of a layout, in their order.
std::vector<uint32_t> WidthsOf(const Layout& layout);

// The tables that have ids, and how many.
std::vector<TableCount> CountsOf(absl::Span<const TableSums> rows);
std::string EncodeRowSums(absl::Span<const TableSums> rows);

// Reads them back. The counts and the bytes may come from anywhere: DATA_LOSS if they do not belong
// together, name a table that the layout does not have, or are not in order. It allocates no more
// than `bytes` has.
absl::StatusOr<std::vector<TableSums>> DecodeRowSums(absl::Span<const TableCount> counts,
                                                     absl::Span<const uint32_t> widths,
                                                     absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_JOURNAL_ROW_SUMS_FORMAT_H_
