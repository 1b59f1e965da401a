// Rows of a table as they lie in a file: the id, the step that touched the row last, its elements,
// and a checksum of them all.

#ifndef SLUICE_SERVER_TABLES_DISK_DISK_RECORDS_H_
#define SLUICE_SERVER_TABLES_DISK_DISK_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/tables/disk/disk_file.h"

namespace sluice {

struct DiskRow {
  RowId id = 0;
  uint64_t touched = 0;  // the latest step that touched it
  const float* elements = nullptr;
  uint64_t offset = 0;  // in the file
};

// Any thread may use it.
class DiskRecords {
 public:
  // `elements` of a row and its slots together. `file`, which may be null while it is not used,
  // outlives it.
  DiskRecords(DiskFile* file, size_t elements) : file_(file), elements_(elements) {}

  uint64_t record_bytes() const;

  // Fails with a sentence, in which case any of the rows may have been written.
  absl::Status Write(absl::Span<const DiskRow> rows) const;
  // Copies the first elements of the row that lies at `offset`, as many as `to` takes. Returns the
  // file's errors, and DATA_LOSS if another row, or none, is there.
  absl::Status Read(uint64_t offset, RowId id, uint64_t touched, absl::Span<float> to) const;

 private:
  DiskFile* const file_;
  const size_t elements_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_DISK_DISK_RECORDS_H_
