#include "server/tables/row_bucket.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/base/little_endian.h"
#include "common/tensor/tensor_chunk.h"
#include "server/tables/row_computer.h"

namespace sluice {
namespace {

bool ByRowId(const PastRow& a, const PastRow& b) { return a.id < b.id; }

// Gives each row that has elements its place. Returns how many those are.
uint32_t PlaceRows(absl::Span<PastRow> rows) {
  uint32_t end = 0;
  for (PastRow& row : rows) {
    if (row.becomes_row || row.before == StoredAs::kRow) row.at = end++;
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

// What a hash map takes, with a byte of control for each place.
template <typename Map>
uint64_t BytesOf(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

// Adds the change of a number since it was counted last.
void CountChange(uint64_t now, uint64_t& counted, std::atomic<uint64_t>& sum) {
  if (now == counted) return;
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
    const auto on_disk = disk_rows_.find(row.id);
    if (on_disk != disk_rows_.end()) {
      disk_slots_.Free(on_disk->second.slot());
      disk_rows_.erase(on_disk);
    }
    RowRecord* record = index_.Find(row.id);
    if (record == nullptr) record = AddRecord(row.id);
    record->touched = row.touched.value();
    std::copy(row.elements.begin(), row.elements.end(), record->elements());
  }
  Count();
}

PastRow RowBucket::Touched(RowId id, uint32_t sum) const {
  PastRow row;
  row.id = id;
  row.sum = sum;
  row.record = index_.Find(id);
  if (row.record != nullptr) {
    row.before = StoredAs::kRow;
    row.becomes_row = true;
    return row;
  }
  const auto waiting = waiting_.find(id);
  if (waiting != waiting_.end()) {
    row.before = StoredAs::kWaiting;
    row.touches = waiting->second.touches;
  }
  row.becomes_row = shape_.Admits(row.touches);
  return row;
}

void RowBucket::Touch(const BucketSums& sums, PastRows& past) {
  const absl::Span<const RowId> ids = sums.ids();
  if (memory_.file() != nullptr) MakeRoomFor(sums);
  {
    absl::MutexLock lock(&mu_);
    for (uint32_t i = 0; i < ids.size(); ++i) {
      if (i + 2 * kFetchedAhead < ids.size()) index_.Prefetch(ids[i + 2 * kFetchedAhead]);
      if (i + kFetchedAhead < ids.size()) {
        index_.PrefetchRecord(ids[i + kFetchedAhead], shape_.elements());
      }
      past.rows[i] = Touched(ids[i], i);
    }
  }
  if (!std::is_sorted(past.rows.begin(), past.rows.end(), ByRowId)) {
    std::sort(past.rows.begin(), past.rows.end(), ByRowId);
  }
  PlaceRows(past.rows);
}

absl::optional<RowId> RowBucket::Compute(const BucketSums& sums, const RowRule& rule,
                                         PastRows& past) const {
  RowComputer computer(shape_, rule);
  for (const PastRow& row : past.rows) {
    if (!row.becomes_row) continue;
    const bool finite =
        computer.Compute(row, sums.sum(row.sum), sums.share(row.sum), past.ElementsOf(row));
    if (!finite) return row.id;
  }
  return absl::nullopt;
}

RowRecord* RowBucket::AddRecord(RowId id) {
  DCHECK(!disk_rows_.contains(id));
  RowRecord* const record = pages_.Allocate(id);
  index_.Insert(record);
  return record;
}

void RowBucket::MakeRow(uint64_t step, PastRow& row, float* elements) {
  if (row.record != nullptr) {
    row.touched = row.record->touched;
    std::swap_ranges(elements, elements + shape_.elements(), row.record->elements());
  } else {
    row.record = AddRecord(row.id);
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

void RowBucket::Make(uint64_t step, PastRows& past, Checksummer* checksum) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < past.rows.size(); ++i) {
    PastRow& row = past.rows[i];
    if (i + kFetchedAhead < past.rows.size()) FetchRecord(past.rows[i + kFetchedAhead]);
    row.becomes_row ? MakeRow(step, row, past.ElementsOf(row).data()) : MakeWait(step, row);
    if (checksum != nullptr) {
      const float* const made = row.becomes_row ? row.record->elements() : nullptr;
      AddTo(*checksum, row, made, shape_.elements());
    }
    row.record = nullptr;
  }
  past.made = true;
  Count();
}

void RowBucket::FetchRecord(const PastRow& row) const {
  if (row.record != nullptr) row.record->Prefetch(shape_.elements());
}

void RowBucket::FetchRecords(const PastRows& past) const {
  for (const PastRow& row : past.rows.first(std::min(kFetchedAhead, past.rows.size())))
    FetchRecord(row);
}

std::vector<PastRow> RowBucket::TakeOld(uint64_t step) {
  std::vector<PastRow> old;
  index_.ForEach([&](RowRecord* record) {
    if (IsOld(step, record->touched)) {
      old.push_back({record->id, StoredAs::kRow, false, 0, record->touched, 0, 0, record});
    }
    return true;
  });
  std::vector<RowRecord*> records;
  for (const PastRow& row : old) records.push_back(row.record);
  index_.Erase(records);
  absl::erase_if(waiting_, [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    if (!IsOld(step, waiting.touched)) return false;
    old.push_back(
        {entry.first, StoredAs::kWaiting, false, waiting.touches, waiting.touched, 0, 0, nullptr});
    return true;
  });
  std::sort(old.begin(), old.end(), ByRowId);
  return old;
}

void RowBucket::Evict(uint64_t step, PastRows& past) {
  if (memory_.file() != nullptr) TakeFromDisk(OldOnDisk(step));
  absl::MutexLock lock(&mu_);
  PastMemory memory;
  memory.rows = TakeOld(step);
  memory.floats = FloatBuffer(PlaceRows(absl::MakeSpan(memory.rows)) * shape_.elements());
  past.Own(std::move(memory));
  for (PastRow& row : past.rows) {
    removed_.push_back({step, row.id});
    if (row.record == nullptr) continue;
    std::copy_n(row.record->elements(), shape_.elements(), past.ElementsOf(row).data());
    pages_.Free(row.record);
    row.record = nullptr;
    counts_.removed.fetch_add(1, std::memory_order_relaxed);
  }
  past.made = true;
  Count();
}

void RowBucket::ForgetRemovals(uint64_t until) {
  absl::MutexLock lock(&mu_);
  const auto first = std::find_if(removed_.begin(), removed_.end(),
                                  [&](const Removed& removed) { return removed.step > until; });
  removed_.erase(removed_.begin(), first);
}

void RowBucket::Count() {
  CountChange(rows(), counted_rows_, counts_.rows);
  CountChange(disk_rows_.size(), counted_on_disk_, counts_.on_disk);
  CountChange(waiting_.size(), counted_waiting_, counts_.waiting);
  const uint64_t index = index_.bytes() + BytesOf(disk_rows_) + BytesOf(waiting_);
  memory_.bytes.fetch_add(pages_.bytes() + index - counted_bytes_, std::memory_order_relaxed);
  CountChange(pages_.bytes() + index, counted_bytes_, counts_.bytes);
  CountChange(rows() * record_bytes(), counted_row_bytes_, memory_.row_bytes);
  CountChange(index, counted_index_bytes_, memory_.index_bytes);
}

}  // namespace sluice
