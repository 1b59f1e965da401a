// Writes a file of rows (rows_format.h) from a snapshot, in one pass.

#ifndef SLUICE_SERVER_DURABLE_ROWS_ROWS_WRITER_H_
#define SLUICE_SERVER_DURABLE_ROWS_ROWS_WRITER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/checkpoint/reading/rows_header.h"
#include "common/storage/file_system.h"
#include "server/snapshots/row_snapshot.h"

namespace sluice {

// Appends the rows of the server's buckets to an empty file, and does not sync it: all rows, or
// with header.base those that were touched and the ids that were removed after that step. It holds
// one block at a time. The rows of the snapshot have the tables, widths and slots of the header.
// Returns the file's checksum. Errors are FileSystem's.
absl::StatusOr<uint64_t> WriteRows(const RowsHeader& header, const RowSnapshot& rows,
                                   WritableFile& file);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ROWS_ROWS_WRITER_H_
