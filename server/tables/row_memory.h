// The memory that the rows of all tables of one server may take, and the file for what is more.

#ifndef SLUICE_SERVER_TABLES_ROW_MEMORY_H_
#define SLUICE_SERVER_TABLES_ROW_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/state/table_memory.h"
#include "server/tables/disk/disk_file.h"

namespace sluice {

// Any thread may use it.
class RowMemory {
 public:
  // So many buckets share it. Without TableMemory::disk, or if it gives no file, all rows stay
  // in memory.
  RowMemory(const TableMemory& memory, size_t buckets);

  uint64_t most_bytes() const { return most_bytes_; }
  DiskFile* file() const { return file_.get(); }
  // Whether rows leave memory to make room for others.
  bool spills() const { return file_ != nullptr && !failing_.load(std::memory_order_relaxed); }
  // What the indices of all buckets may take at most where rows lie on the disk.
  uint64_t most_index_bytes() const { return most_bytes_ / 4 * 3; }
  // How the latest write to the file ended. A bucket may find room where others do not, so it
  // counts as working again after as many writes without an error as there are buckets. The log
  // tells it.
  void NoteWrite(const absl::Status& written);

  // The records of a bucket may take so many bytes, if all its rows would take `bytes`: its part of
  // what the indices leave, by the size of its rows. A small table beside a large one has some,
  // too.
  uint64_t ShareOf(uint64_t bytes) const;
  // The same, while it is unknown how many rows there will be.
  uint64_t EvenShare() const;

  // What all buckets take, what their indices take of that, and what all rows together, also those
  // on the disk, would take as records.
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> index_bytes{0};
  std::atomic<uint64_t> row_bytes{0};

 private:
  const uint64_t most_bytes_;
  const uint64_t buckets_;
  const std::unique_ptr<DiskFile> file_;
  std::atomic<bool> failing_{false};
  std::atomic<uint64_t> worked_{0};  // writes since the last error
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_MEMORY_H_
