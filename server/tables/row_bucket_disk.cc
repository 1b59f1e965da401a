// The part of RowBucket that moves rows between memory and the disk. Only the thread that makes
// steps moves rows, so it reads records, and the disk, without the mutex.

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "server/tables/row_bucket.h"

namespace sluice {
namespace {

// Rows that are taken from the disk at once.
constexpr size_t kAtOnce = 1024;
// The part of a bucket's share that stays free when rows have left, so that they leave in groups.
constexpr uint64_t kFreed = 8;
// The exit code of a process that lost what only a checkpoint has. A journal that cannot be synced
// has the same.
constexpr int kLost = 6;

[[noreturn]] void EndWithoutRow(const absl::Status& why) {
  LOG(ERROR) << why.message() << "; start the server again, from its checkpoint";
  std::_Exit(kLost);
}

}  // namespace

// ---- The thread that makes steps ----

RowBucket::Coming RowBucket::ComingOf(const BucketSums& sums) const {
  Coming coming;
  absl::MutexLock lock(&mu_);
  coming.share = memory_.ShareOf(rows() * record_bytes());
  for (const RowId id : sums.ids()) {
    if (index_.Find(id) != nullptr) continue;
    if (disk_rows_.contains(id)) {
      coming.on_disk.push_back(id);
      continue;
    }
    const auto waiting = waiting_.find(id);
    if (shape_.Admits(waiting == waiting_.end() ? 0 : waiting->second.touches)) ++coming.fresh;
  }
  return coming;
}

void RowBucket::MakeRoomFor(const BucketSums& sums) {
  const Coming coming = ComingOf(sums);
  SendToDisk(coming.share, coming.fresh + coming.on_disk.size(),
             [&](RowId id) { return sums.Has(id); });
  TakeFromDisk(coming.on_disk);
}

std::vector<DiskRow> RowBucket::OldestRows(uint64_t room, size_t more,
                                           absl::FunctionRef<bool(RowId)> stays) const {
  std::vector<DiskRow> old;
  absl::MutexLock lock(&mu_);
  if (index_.size() + more <= room) return old;
  index_.ForEach([&](RowRecord* record) {
    if (record->touched <= DiskPlace::kMostTouched && !stays(record->id)) {
      old.push_back({record->id, record->touched, record->elements(), 0});
    }
    return true;
  });
  const size_t most = index_.size() + more - (room - room / kFreed);
  if (most >= old.size()) return old;
  std::nth_element(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(most), old.end(),
                   [](const DiskRow& a, const DiskRow& b) { return a.touched < b.touched; });
  old.resize(most);
  return old;
}

void RowBucket::SendToDisk(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays) {
  std::vector<DiskRow> old = OldestRows(share / record_bytes(), more, stays);
  if (old.empty()) return;
  const std::vector<uint32_t> slots = TakeSlots(old);
  const absl::Status written = disk_records_.Write(old);
  memory_.NoteWrite(written);
  absl::MutexLock lock(&mu_);
  if (!written.ok()) {
    for (const uint32_t slot : slots) disk_slots_.Free(slot);
    return;
  }
  std::vector<RowRecord*> records;
  for (size_t i = 0; i < old.size(); ++i) {
    records.push_back(index_.Find(old[i].id));
    disk_rows_.emplace(old[i].id, DiskPlace(slots[i], old[i].touched));
  }
  index_.Erase(records);
  for (RowRecord* const record : records) pages_.Free(record);
  if (pages_.bytes() > share + share / kFreed) Compact();
  Count();
}

std::vector<uint32_t> RowBucket::TakeSlots(std::vector<DiskRow>& rows) {
  absl::MutexLock lock(&mu_);
  std::vector<uint32_t> slots = disk_slots_.Take(rows.size());
  rows.resize(slots.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].offset = disk_slots_.OffsetOf(slots[i]);
  return slots;
}

void RowBucket::Compact() {
  RecordPages compact(shape_.elements());
  index_.Replace([&](const RowRecord* record) {
    RowRecord* const moved = compact.Allocate(record->id);
    moved->touched = record->touched;
    std::copy_n(record->elements(), shape_.elements(), moved->elements());
    return moved;
  });
  pages_ = std::move(compact);
}

void RowBucket::TakeFromDisk(absl::Span<const RowId> ids) {
  for (size_t begin = 0; begin < ids.size(); begin += kAtOnce) {
    TakeSomeFromDisk(ids.subspan(begin, kAtOnce));
  }
}

void RowBucket::TakeSomeFromDisk(absl::Span<const RowId> ids) {
  const size_t size = shape_.elements();
  std::vector<float> elements(ids.size() * size);
  std::vector<RowOnDisk> rows;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      rows.push_back(PlaceOf(ids[i], elements.data() + i * size));
    }
  }
  for (const RowOnDisk& row : rows) {
    const absl::Status read = disk_records_.Read(row.offset, row.id, row.touched, {row.to, size});
    if (!read.ok()) EndWithoutRow(read);
  }
  absl::MutexLock lock(&mu_);
  for (const RowOnDisk& row : rows) {
    const auto place = disk_rows_.find(row.id);
    disk_slots_.Free(place->second.slot());
    disk_rows_.erase(place);
    RowRecord* const record = AddRecord(row.id);
    record->touched = row.touched;
    std::copy_n(row.to, size, record->elements());
  }
  Count();
}

std::vector<RowId> RowBucket::OldOnDisk(uint64_t step) const {
  std::vector<RowId> old;
  absl::MutexLock lock(&mu_);
  for (const auto& [id, place] : disk_rows_) {
    if (IsOld(step, place.touched())) old.push_back(id);
  }
  return old;
}

// ---- Any thread ----

RowBucket::RowOnDisk RowBucket::PlaceOf(RowId id, float* to) const {
  const DiskPlace place = disk_rows_.find(id)->second;
  return {id, place.touched(), disk_slots_.OffsetOf(place.slot()), to};
}

// Its slot may have another row by now. While the mutex is held it cannot.
void RowBucket::ReadFromDisk(uint64_t step, size_t count,
                             const std::vector<RowOnDisk>& rows) const {
  for (const RowOnDisk& row : rows) {
    const absl::Span<float> to(row.to, count);
    if (disk_records_.Read(row.offset, row.id, row.touched, to).ok()) continue;
    absl::MutexLock lock(&mu_);
    if (!Find(step, row.id, count, row.to).on_disk) continue;
    const RowOnDisk now = PlaceOf(row.id, row.to);
    const absl::Status read = disk_records_.Read(now.offset, now.id, now.touched, to);
    if (!read.ok()) EndWithoutRow(read);
  }
}

}  // namespace sluice
