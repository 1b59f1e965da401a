#include "server/tables/bucket_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace sluice {
namespace {

// The part of a bucket's share that stays free when rows have left, so that they leave in groups.
constexpr uint64_t kFreed = 8;

// What a hash map takes, with a byte of control for each place.
template <typename Map>
uint64_t MapBytes(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

// How many of `more` entries a map could not take as it is. It is full at 7/8.
template <typename Map>
uint64_t BeyondRoom(const Map& map, uint64_t more) {
  const uint64_t most = map.capacity() / 8 * 7;
  const uint64_t entries = map.size() + more;
  return entries > most ? std::min(more, entries - most) : 0;
}

// Adds the change of a number since it was counted last.
void CountChange(uint64_t now, uint64_t& counted, std::atomic<uint64_t>& sum) {
  if (now == counted) return;
  sum.fetch_add(now - counted, std::memory_order_relaxed);
  counted = now;
}

}  // namespace

BucketRows::BucketRows(const RowShape& shape, RowMemory& memory, RowCounts& counts)
    : shape_(shape),
      memory_(memory),
      counts_(counts),
      record_bytes_(RecordPages::BytesOf(shape.elements())),
      pages_(shape.elements()),
      slots_(memory.file(), DiskRecords(memory.file(), shape.elements()).record_bytes()) {}

FoundRow BucketRows::Find(RowId id) const {
  RowRecord* const record = index_.Find(id);
  if (record != nullptr) return {StoredAs::kRow, record->touched, 0, false, 0, record};
  const auto on_disk = on_disk_.find(id);
  if (on_disk != on_disk_.end()) {
    const DiskPlace place = on_disk->second;
    return {StoredAs::kRow, place.touched(), 0, true, slots_.OffsetOf(place.slot())};
  }
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return {};
  return {StoredAs::kWaiting, waiting->second.touched, waiting->second.touches};
}

RowGrowth BucketRows::CountNew(absl::Span<const RowId> ids) const {
  RowGrowth growth;
  for (const RowId id : ids) {
    const FoundRow found = Find(id);
    if (found.as == StoredAs::kRow) {
      growth.returning += found.on_disk ? 1 : 0;
    } else if (shape_.Admits(found.touches)) {
      ++growth.rows;
    } else if (found.as == StoredAs::kAbsent) {
      ++growth.waiting;
    }
  }
  const uint64_t records = growth.rows + growth.returning;
  growth.record_bytes = pages_.BytesFor(records);
  growth.index_bytes = BeyondRoom(waiting_, growth.waiting) * kWaitingBytes;
  if (memory_.spills()) {  // for each row that comes to memory, another one goes to the disk
    growth.index_bytes += BeyondRoom(on_disk_, growth.rows) * kDiskPlaceBytes;
  } else {
    growth.index_bytes += index_.BytesFor(records);
  }
  return growth;
}

void BucketRows::Prefetch(RowId id) const {
  index_.Prefetch(id);
  if (!on_disk_.empty()) on_disk_.prefetch(id);
}

RowRecord* BucketRows::Add(RowId id) {
  GiveUpSlot(id);
  waiting_.erase(id);
  RowRecord* const record = pages_.Allocate(id);
  index_.Insert(record);
  return record;
}

void BucketRows::GiveUpSlot(RowId id) {
  const auto place = on_disk_.find(id);
  if (place == on_disk_.end()) return;
  slots_.Free(place->second.slot());
  on_disk_.erase(place);
}

void BucketRows::Remove(absl::Span<const RowId> ids) {
  std::vector<RowRecord*> records;
  for (const RowId id : ids) {
    RowRecord* const record = index_.Find(id);
    if (record != nullptr) records.push_back(record);
    GiveUpSlot(id);
    waiting_.erase(id);
  }
  index_.Erase(records);
  for (RowRecord* const record : records) pages_.Free(record);
}

BucketRows::Leaving BucketRows::TakeOldest(uint64_t share, size_t more,
                                           absl::FunctionRef<bool(RowId)> stays) {
  Leaving leaving;
  const uint64_t room = share / record_bytes_;
  if (index_.size() + more <= room) return leaving;
  std::vector<DiskRow>& old = leaving.rows;
  index_.ForEach([&](RowRecord* record) {
    if (record->touched <= DiskPlace::kMostTouched && !stays(record->id)) {
      old.push_back({record->id, record->touched, record->elements(), 0});
    }
    return true;
  });
  const size_t most = index_.size() + more - (room - room / kFreed);
  if (most < old.size()) {
    std::nth_element(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(most), old.end(),
                     [](const DiskRow& a, const DiskRow& b) { return a.touched < b.touched; });
  }
  leaving.slots = slots_.Take(std::min(most, old.size()));
  old.resize(leaving.slots.size());
  for (size_t i = 0; i < old.size(); ++i) old[i].offset = slots_.OffsetOf(leaving.slots[i]);
  return leaving;
}

void BucketRows::Leave(const Leaving& leaving, uint64_t share) {
  std::vector<RowRecord*> records;
  for (size_t i = 0; i < leaving.rows.size(); ++i) {
    const DiskRow& row = leaving.rows[i];
    records.push_back(index_.Find(row.id));
    on_disk_.emplace(row.id, DiskPlace(leaving.slots[i], row.touched));
  }
  index_.Erase(records);
  for (RowRecord* const record : records) pages_.Free(record);
  if (pages_.bytes() > share + share / kFreed) Compact();
}

void BucketRows::Stay(const Leaving& leaving) {
  for (const uint32_t slot : leaving.slots) slots_.Free(slot);
}

void BucketRows::Compact() {
  RecordPages compact(shape_.elements());
  index_.Replace([&](const RowRecord* record) {
    RowRecord* const moved = compact.Allocate(record->id);
    moved->touched = record->touched;
    std::copy_n(record->elements(), shape_.elements(), moved->elements());
    return moved;
  });
  pages_ = std::move(compact);
}

void BucketRows::Count() {
  CountChange(rows(), counted_rows_, counts_.rows);
  CountChange(on_disk_.size(), counted_on_disk_, counts_.on_disk);
  CountChange(waiting_.size(), counted_waiting_, counts_.waiting);
  const uint64_t index = index_.bytes() + MapBytes(on_disk_) + MapBytes(waiting_);
  memory_.bytes.fetch_add(pages_.bytes() + index - counted_bytes_, std::memory_order_relaxed);
  CountChange(pages_.bytes() + index, counted_bytes_, counts_.bytes);
  CountChange(row_bytes(), counted_row_bytes_, memory_.row_bytes);
  CountChange(index, counted_index_bytes_, memory_.index_bytes);
}

}  // namespace sluice
