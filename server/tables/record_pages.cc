#include "server/tables/record_pages.h"

#include <algorithm>
#include <new>

namespace sluice {
namespace {

constexpr size_t kFirstPageBytes = 512;
constexpr uint64_t kGrowth = 16;  // a page is this part of the bucket

}  // namespace

uint64_t RecordPages::BytesOf(size_t elements) {
  const size_t bytes = sizeof(RowRecord) + elements * sizeof(float);
  return (bytes + alignof(RowRecord) - 1) / alignof(RowRecord) * alignof(RowRecord);
}

RecordPages::RecordPages(size_t elements) : record_bytes_(BytesOf(elements)) {}

RowRecord* RecordPages::Allocate(RowId id) {
  RowRecord* record = nullptr;
  if (free_.empty()) {
    if (next_ == end_) AddPage();
    record = new (next_) RowRecord;
    next_ += record_bytes_;
  } else {
    record = free_.back();
    free_.pop_back();
  }
  record->id = id;
  return record;
}

void RecordPages::AddPage() {
  const uint64_t least = std::max<uint64_t>(1, kFirstPageBytes / record_bytes_);
  const uint64_t records = std::max(least, records_ / kGrowth);
  pages_.emplace_back(new char[records * record_bytes_]);
  next_ = pages_.back().get();
  end_ = next_ + records * record_bytes_;
  records_ += records;
}

}  // namespace sluice
