// The memory of the rows of one bucket: records of one size, in pages that grow with the bucket.
//
// A record stays where it is. A page is a sixteenth of what the bucket has already, so a small
// table is small, and a large one wastes little.

#ifndef SLUICE_SERVER_TABLES_RECORD_PAGES_H_
#define SLUICE_SERVER_TABLES_RECORD_PAGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/tensor/fetch_ahead.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// The head of a record. The row and its slots follow it.
struct RowRecord {
  RowId id = 0;
  uint64_t touched = 0;  // the latest step whose gradients touched the row

  float* elements() { return reinterpret_cast<float*>(this + 1); }
  const float* elements() const { return reinterpret_cast<const float*>(this + 1); }
  // Asks for the memory of the head and the first `count` elements, at most 1 KiB: the processor
  // goes on by itself.
  void Prefetch(size_t count) const {
    FetchAhead(this, std::min<size_t>(sizeof(RowRecord) + count * sizeof(float), 1024));
    // Gcc leaves out the calls of a function that does nothing but ask for memory.
    asm volatile("");
  }
};

// Externally synchronized.
class RecordPages {
 public:
  // `elements` of the row and its slots together.
  explicit RecordPages(size_t elements);

  // One record takes so many bytes.
  static uint64_t BytesOf(size_t elements);

  // A record of that row, whose elements are not initialised.
  RowRecord* Allocate(RowId id);
  void Free(RowRecord* record) { free_.push_back(record); }

  // Of all pages.
  uint64_t bytes() const { return records_ * record_bytes_; }
  // What so many more records would take, at least, beside the pages there are.
  uint64_t BytesFor(uint64_t more) const {
    const uint64_t room = free_.size() + static_cast<uint64_t>(end_ - next_) / record_bytes_;
    return more > room ? (more - room) * record_bytes_ : 0;
  }

 private:
  void AddPage();

  size_t record_bytes_;
  std::vector<std::unique_ptr<char[]>> pages_;
  uint64_t records_ = 0;  // in all pages
  char* next_ = nullptr;  // what was never allocated of the last page
  char* end_ = nullptr;
  std::vector<RowRecord*> free_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_RECORD_PAGES_H_
