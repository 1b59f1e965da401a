// What people want of the tables of a checkpoint: how many rows they have, and a table in a file
// that other programs read. Any thread may call the functions.

#ifndef SLUICE_SERVER_DURABLE_ROWS_SAVED_TABLES_H_
#define SLUICE_SERVER_DURABLE_ROWS_SAVED_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/saved_rows.h"
#include "common/storage/file_system.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// What a table has.
struct RowFigures {
  uint64_t rows = 0;
  uint64_t waiting = 0;   // ids that wait for their admission
  uint64_t elements = 0;  // of the rows and their slots
};

// In the order of so many tables. Reads all rows; errors are those of SavedRows.
absl::StatusOr<std::vector<RowFigures>> CountRows(const SavedRows& rows, size_t tables);

// Appends a table to an empty file, as safetensors: "ids" of shape [n], in ascending order, as U64
// if one is 2^63 or more, else as I64; "rows" of shape [n, width], F32; and for each slot, under
// its name, a tensor as "rows". Ids that wait are left out. It holds the whole table. Errors are
// those of SavedRows and FileSystem.
absl::Status ExportTable(const SavedRows& rows, uint32_t table, uint32_t width,
                         const RowSlots& slots, WritableFile& file);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ROWS_SAVED_TABLES_H_
