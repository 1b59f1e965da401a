#include "server/tables/row_bucket.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/base/little_endian.h"
#include "common/tensor/tensor_chunk.h"
#include "server/tables/row_computer.h"

namespace sluice {
namespace {

// Rows whose memory is asked for ahead of their use.
constexpr size_t kAhead = 8;

// Gives each row that has elements its place. Returns the sum of their sizes.
size_t PlaceRows(size_t elements, std::vector<PastRow>& rows) {
  size_t end = 0;
  for (PastRow& row : rows) {
    if (!row.becomes_row && row.before != StoredAs::kRow) continue;
    row.at = end;
    end += elements;
  }
  return end;
}

void AddTo(Checksummer& checksum, const PastRow& row, const float* made, size_t elements) {
  checksum.Add(LittleEndian64(row.id));
  if (row.becomes_row) {
    checksum.Add(BytesOf({made, elements}));
  } else {
    checksum.Add(LittleEndian64(row.touches + 1));
  }
}

// Adds the change of a number since it was counted last.
void CountChange(uint64_t now, uint64_t& counted, std::atomic<uint64_t>& sum) {
  sum.fetch_add(now - counted, std::memory_order_relaxed);
  counted = now;
}

}  // namespace

RowBucket::RowBucket(const RowShape& shape, uint64_t key, const RowHistory& history,
                     RowMemory& memory, RowCounts& counts)
    : shape_(shape),
      key_(key),
      history_(history),
      memory_(memory),
      counts_(counts),
      disk_records_(memory.file(), shape.elements()),
      pages_(shape.elements()),
      disk_slots_(memory.file(), disk_records_.record_bytes()) {}

void RowBucket::Load(const StoredRow& row) {
  if (memory_.file() != nullptr) SendToDisk(memory_.EvenShare(), 1, [](RowId) { return false; });
  absl::MutexLock lock(&mu_);
  if (row.touches > 0) {
    waiting_[row.id] = {row.touches, row.touched.value()};
  } else {
    RowEntry& entry = rows_[row.id];
    if (entry.on_disk()) {
      --on_disk_;
      disk_slots_.Free(entry.slot());
    }
    RowRecord* const record = entry.has_record() ? entry.record() : pages_.Allocate();
    record->touched = row.touched.value();
    std::copy(row.elements.begin(), row.elements.end(), record->elements());
    entry = RowEntry(record);
  }
  Count();
}

std::vector<PastRow> RowBucket::Touched(const BucketSums& sums,
                                        const std::vector<uint32_t>& order) const {
  std::vector<PastRow> rows(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    PastRow& row = rows[i];
    row.id = sums.id(order[i]);
    if (i + kAhead < order.size()) rows_.prefetch(sums.id(order[i + kAhead]));
    const auto entry = rows_.find(row.id);
    if (entry != rows_.end()) {
      row.before = StoredAs::kRow;
      row.record = entry->second.record();
      row.becomes_row = true;
      row.record->Prefetch(shape_.elements());
      continue;
    }
    const auto waiting = waiting_.find(row.id);
    if (waiting != waiting_.end()) {
      row.before = StoredAs::kWaiting;
      row.touches = waiting->second.touches;
    }
    row.becomes_row = shape_.Admits(row.touches);
  }
  return rows;
}

std::unique_ptr<PastRows> RowBucket::Prepare(const BucketSums& sums, const RowRule& rule,
                                             absl::optional<RowId>* bad) {
  auto past = std::make_unique<PastRows>(key_, shape_.elements());
  const std::vector<uint32_t> order = sums.Order();
  if (memory_.file() != nullptr) MakeRoomFor(sums, order);
  {
    absl::MutexLock lock(&mu_);
    past->rows = Touched(sums, order);
  }
  past->floats = FloatBuffer(PlaceRows(shape_.elements(), past->rows));
  RowComputer computer(shape_, rule);
  for (size_t i = 0; i < order.size(); ++i) {
    const PastRow& row = past->rows[i];
    if (!row.becomes_row) continue;
    const absl::Span<float> next = past->floats.span().subspan(row.at, shape_.elements());
    const bool finite = computer.Compute(row, sums.sum(order[i]), sums.share(order[i]), next);
    if (finite) continue;
    *bad = row.id;
    break;
  }
  return past;
}

void RowBucket::MakeRow(uint64_t step, PastRow& row, float* elements) {
  if (row.record != nullptr) {
    row.touched = row.record->touched;
    std::swap_ranges(elements, elements + shape_.elements(), row.record->elements());
  } else {
    row.record = pages_.Allocate();
    rows_[row.id] = RowEntry(row.record);
    std::copy_n(elements, shape_.elements(), row.record->elements());
    const auto waiting = waiting_.find(row.id);
    if (waiting != waiting_.end()) {
      row.touched = waiting->second.touched;
      waiting_.erase(waiting);
    }
  }
  row.record->touched = step;
}

void RowBucket::MakeWait(uint64_t step, PastRow& row) {
  Waiting& waiting = waiting_[row.id];
  row.touched = waiting.touched;
  waiting = {row.touches + 1, step};
  counts_.dropped.fetch_add(1, std::memory_order_relaxed);
}

void RowBucket::Make(uint64_t step, PastRows& rows, Checksummer* checksum) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    PastRow& row = rows.rows[i];
    const size_t ahead = std::min(i + kAhead, rows.rows.size() - 1);
    if (rows.rows[ahead].record != nullptr) rows.rows[ahead].record->Prefetch(shape_.elements());
    row.becomes_row ? MakeRow(step, row, rows.floats.from(row.at)) : MakeWait(step, row);
    if (checksum != nullptr) {
      const float* const made = row.becomes_row ? row.record->elements() : nullptr;
      AddTo(*checksum, row, made, shape_.elements());
    }
    row.record = nullptr;
  }
  rows.made = true;
  Count();
}

std::vector<PastRow> RowBucket::TakeOld(uint64_t step) {
  std::vector<PastRow> old;
  absl::erase_if(rows_, [&](const auto& row) {
    const RowEntry& entry = row.second;
    if (!IsOld(step, entry.touched())) return false;
    old.push_back({row.first, StoredAs::kRow, false, 0, entry.touched(), 0, entry.record()});
    return true;
  });
  absl::erase_if(waiting_, [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    if (!IsOld(step, waiting.touched)) return false;
    old.push_back(
        {entry.first, StoredAs::kWaiting, false, waiting.touches, waiting.touched, 0, nullptr});
    return true;
  });
  std::sort(old.begin(), old.end(), [](const PastRow& a, const PastRow& b) { return a.id < b.id; });
  return old;
}

void RowBucket::Evict(uint64_t step, PastRows& rows) {
  if (memory_.file() != nullptr) TakeFromDisk(OldOnDisk(step));
  absl::MutexLock lock(&mu_);
  rows.rows = TakeOld(step);
  rows.floats = FloatBuffer(PlaceRows(shape_.elements(), rows.rows));
  for (PastRow& row : rows.rows) {
    removed_.push_back({step, row.id});
    if (row.record == nullptr) continue;
    std::copy_n(row.record->elements(), shape_.elements(), rows.floats.from(row.at));
    pages_.Free(row.record);
    row.record = nullptr;
    counts_.removed.fetch_add(1, std::memory_order_relaxed);
  }
  rows.made = true;
  Count();
}

void RowBucket::ForgetRemovals(uint64_t until) {
  absl::MutexLock lock(&mu_);
  const auto first = std::find_if(removed_.begin(), removed_.end(),
                                  [&](const Removed& removed) { return removed.step > until; });
  removed_.erase(removed_.begin(), first);
}

void RowBucket::Count() {
  CountChange(rows_.size(), counted_rows_, counts_.rows);
  CountChange(on_disk_, counted_on_disk_, counts_.on_disk);
  CountChange(waiting_.size(), counted_waiting_, counts_.waiting);
  const uint64_t index = rows_.capacity() * (sizeof(std::pair<RowId, RowEntry>) + 1) +
                         waiting_.capacity() * (sizeof(std::pair<RowId, Waiting>) + 1);
  memory_.bytes.fetch_add(pages_.bytes() + index - counted_bytes_, std::memory_order_relaxed);
  CountChange(pages_.bytes() + index, counted_bytes_, counts_.bytes);
  CountChange(rows_.size() * record_bytes(), counted_row_bytes_, memory_.row_bytes);
  CountChange(index, counted_index_bytes_, memory_.index_bytes);
}

}  // namespace sluice
